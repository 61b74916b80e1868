"""A fabric manager's package in place of an earlier one.

Tried with apt 2.6 and packages of these names: it removes an earlier one that conflicts in the same
transaction; it does not where that is held, with `--allow-change-held-packages` either; without a
conflict dpkg stops at /usr/bin/nv-fabricmanager, `trying to overwrite`.
"""

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.node_state import parse
from gpuboot.hosts.pci import PciDevice
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_node_state import ANSWER
from tests.unit.test_preflight import CLEAN, H100, gpu

HGX = replace(
    CLEAN,
    pci=(
        *(gpu(H100, 16 + slot) for slot in range(8)),
        *(PciDevice(f"0000:0{slot}:00.0", 0x22A3, "0x068000") for slot in range(4)),
    ),
)
NODE = Node("gpu1", "gpu1", "10.0.0.5", "worker", gpus=8, leader=False)
NEW, OLD = "nvidia-fabricmanager", "nvidia-fabricmanager-570"


def problems(
    packages: dict[str, str], holds: set[str] | None = None, **driver: str
) -> list[tuple[str, str]]:
    """+ packages: installed fabric managers, with what they conflict with"""
    parsed = parse_settings({"driver": driver})
    state = replace(HGX, fabric_managers=packages, holds=frozenset(holds or ()))
    reported = evaluate([NODE], {NODE.host: state}, parsed, versions.lock(parsed))
    return [(problem.cause, problem.remedy) for problem in reported]


def test_apt_replaces_one_that_conflicts() -> None:
    assert problems({}) == []
    assert problems({OLD: NEW}) == []
    assert problems({OLD: f"fabricmanager (<< 1), {NEW}"}) == []
    assert problems({NEW: ""}, {NEW}) == [], "another version of the same package"
    assert problems({f"{NEW}-dev-570": f"{NEW}-dev"}) == []


@pytest.mark.parametrize("old", [OLD, "nvidia-fabricmanager-535"])
def test_one_that_is_held(old: str) -> None:
    [(cause, remedy)] = problems({old: NEW}, {old})
    assert cause == f"the package {old} is held, and {NEW} cannot be installed beside it"
    assert f"`apt-mark unhold {old}`" in remedy


def test_the_way_back_to_a_branch_with_its_number() -> None:
    back: dict[str, Any] = {"version": "570.211.01"}
    assert problems({NEW: ""}, **back) == [], "the new one conflicts with it"
    [(cause, _)] = problems({NEW: ""}, {NEW}, **back)
    assert f"{NEW} is held, and {OLD} cannot be installed" in cause
    assert problems({OLD: NEW}, {OLD}, **back) == []


@pytest.mark.parametrize("conflicts", ["", f"{NEW}-dev", "nvidia-fabricmanager-560"])
def test_one_that_does_not_say_that_it_conflicts(conflicts: str) -> None:
    [(cause, remedy)] = problems({OLD: conflicts})
    assert "dpkg would stop in the middle" in cause
    assert f"`apt-get remove {OLD}`" in remedy


def test_who_manages_no_fabric_is_not_concerned() -> None:
    assert problems({OLD: ""}, {OLD}, fabric_manager="never") == []
    parsed = parse_settings({})
    state = replace(CLEAN, fabric_managers={OLD: ""})
    node = replace(NODE, gpus=1)
    assert evaluate([node], {node.host: state}, parsed, versions.lock(parsed)) == []


def test_what_the_fact_prints() -> None:
    line = f"fabric_manager\t{OLD} {NEW}"
    state = parse([*ANSWER[:-1], line, f"fabric_manager\t{NEW} ", ANSWER[-1]])
    assert state.fabric_managers == {OLD: NEW, NEW: ""}
