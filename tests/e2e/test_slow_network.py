"""A site that is far away, over a link that loses packets: slower, and no different."""

from __future__ import annotations

import time

import pytest

from bench.network import Condition, controller, ping
from lab import state
from tests.e2e.conftest import Run, fresh_lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

FAR = Condition("100ms-loss", rtt_ms=100, loss_percent=3)
SITE = ["pyinfra", "inventories/lab.py", "deploys/site.py", "-y"]


def test_bare_machines_are_proven_over_a_bad_link() -> None:
    with fresh_lab("test-far", "--gpus", "1", "--no-deploy") as lab:
        lab_state = state.load(lab.name)
        with controller(lab_state, FAR) as remote:
            link = ping(lab_state, lab_state.leader, remote)
            assert link.mean_ms > 90, link

            def timed(*arguments: str) -> Run:
                start = time.monotonic()
                result = lab.command([*remote.prefix(), *SITE, *arguments], timeout=3000)
                print(f"{time.monotonic() - start:.0f} s over {FAR.title}")
                return result

            result = timed()
            assert result.code == 0, result.details
            assert "proven" in result.text
            assert timed("--json").changes == []
