"""Machines that were used before: deployed to, PROVEN and rebooted; what they had still works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest

from lab import state
from lab.lives import LIVES, Life
from lab.lives import dress as lives
from tests.e2e.conftest import Lab, fresh_lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]

# the lab leaves swap alone by itself: it is the host's
SETTINGS = {"cluster": {"fail_swap_on": True}}
GPUS = 2
each_life = pytest.mark.parametrize(
    "life", [life for life in LIVES if not life.refusal], ids=lambda life: life.name
)


@pytest.fixture(scope="module")
def used() -> Iterator[Lab]:
    """A control plane and a worker that wear all lives that gpuboot is deployed to."""
    with fresh_lab("test-used", "--used", "--gpus", str(GPUS), settings=SETTINGS) as lab:
        yield lab


def proven(used: Lab) -> None:
    report = json.loads((used.reports / "latest/verify.json").read_text())
    assert (report["verdict"], report["totals"]["gpus"]) == ("proven", GPUS), report


def test_every_gpu_is_proven(used: Lab) -> None:
    proven(used)


@each_life
def test_what_a_life_brought_works_beside_the_cluster(used: Lab, life: Life) -> None:
    lives.works(state.load(used.name), life)


def test_after_a_reboot_nothing_is_to_change_and_every_gpu_is_proven(used: Lab) -> None:
    machines = [machine.name for machine in state.load(used.name).machines]
    for machine in machines:
        used.reboot(machine)
    for machine in machines:  # while a machine still boots, its kubelet is one that does not run
        until(partial(_has_booted, used, machine), f"{machine} has booted")
    assert used.deploy("--json").changes == []
    proven(used)


def _has_booted(used: Lab, machine: str) -> bool:
    return used.ssh(machine, "systemctl is-active kubelet || true") == "active\n"


@each_life
def test_what_a_life_brought_works_after_a_reboot(used: Lab, life: Life) -> None:
    lives.works(state.load(used.name), life)


def test_what_boots_turn_back_on_is_off(used: Lab) -> None:
    for machine in state.load(used.name).machines:
        assert used.ssh(machine.name, "sysctl -n net.ipv4.ip_forward") == "1\n"
        swap = "systemctl show -p ActiveState -p LoadState --value swap.target"
        assert used.ssh(machine.name, swap).split() == ["masked", "inactive"]
