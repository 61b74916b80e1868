"""A site that is far away, over a link that loses packets: slower, and no different."""

from __future__ import annotations

import time

import pytest

from bench.network import Condition, controller, ping
from lab import state
from tests.e2e.conftest import Run, fresh

pytestmark = [pytest.mark.lab, pytest.mark.long]

FAR = Condition("100ms-loss", rtt_ms=100, loss_percent=3)
SITE = ["pyinfra", "inventories/lab.py", "deploys/site.py", "-y"]


def test_bare_machines_are_proven_over_a_bad_link() -> None:
    with fresh("test-far", "--gpus", "1", "--no-deploy") as lab:
        made = state.load(lab.name)
        with controller(made, FAR) as here:
            link = ping(made, made.leader, here)
            assert link.mean_ms > 90, link

            def timed(*arguments: str) -> Run:
                began = time.monotonic()
                done = lab.command([*here.prefix(), *SITE, *arguments], timeout=3000)
                print(f"{time.monotonic() - began:.0f} s over {FAR.title}")
                return done

            done = timed()
            assert done.code == 0, done.told
            assert "proven" in done.text
            assert timed("--json").changes == []
