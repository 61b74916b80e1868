"""MIG profiles by the driver's own word, and of models that the table does not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.cluster import offers
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.hosts import driver_mig, sharing_checks
from gpuboot.hosts import gpu_sharing as sharing
from gpuboot.hosts.driver_mig import DriverProfiles
from gpuboot.hosts.gpu_sharing import Offer
from gpuboot.hosts.node_state import parse
from gpuboot.hosts.pci import PciDevice
from tests.unit.test_node_state import ANSWER
from tests.unit.test_offers import node_status
from tests.unit.test_sharing import NODE

GB200, GB300, B300, RTX, PG506, NEW = 0x2941, 0x31C2, 0x3182, 0x2BB5, 0x20B6, 0x3FFF
T4, L40S, A10, RTX_5090 = 0x1EB8, 0x26B9, 0x2236, 0x2B85
# mig-parted issue 227 and gpu-operator pull request 1303: two drivers, two sets of names of GB200
OLD_GB200 = {GB200: {"1g.24gb": 7, "1g.47gb": 4, "2g.47gb": 3, "3g.95gb": 2, "7g.189gb": 1}}
FUTURE = {NEW: {"1g.99gb": 7, "1g.99gb+me": 1, "2g.198gb": 3, "3g.396gb": 2, "7g.792gb": 1}}


def shared(layout: str, instances: dict[str, int] | None = None, **sharing: Any) -> Settings:
    return parse_settings(
        {
            "gpu_operator": {"mig_strategy": "mixed"},
            "sharing": {"inference": {"mig": layout}, **sharing},
            "mig_layouts": {"mine": [{"instances": instances}]} if instances else {},
        }
    )


def problems(settings: Settings, device: int, driver: DriverProfiles | None = None) -> str:
    pci = tuple(PciDevice(f"0000:{n:02x}:00.0", device, "0x030200") for n in range(2))
    state = replace(parse(ANSWER), pci=pci, mig_profiles=driver or {})
    return "\n".join(cause for cause, _ in sharing_checks.of_host(NODE, state, settings))


@pytest.mark.parametrize(
    ("device", "layout", "instances"),
    [
        (GB200, "all-1g.23gb", None), (GB200, "mine", {"3g.93gb": 1, "2g.47gb": 1, "1g.23gb": 2}),
        (B300, "all-1g.34gb.me", None), (B300, "mine", {"4g.135gb": 1, "3g.135gb": 1}),
        (GB300, "all-balanced", None), (RTX, "all-2g.48gb.gfx", None),
        (RTX, "mine", {"2g.48gb+me.all": 1, "1g.24gb-me": 2}), (PG506, "all-3g.48gb", None),
        (NEW, "all-1g.99gb", None), (NEW, "all-balanced", None), (NEW, "mine", {"1g.99gb": 7}),
        (RTX_5090, "all-1g.8gb", None),  # a chip of a generation that has MIG: its driver knows
    ],
)  # fmt: skip
def test_layouts_that_are_not_refused(device: int, layout: str, instances: dict[str, int]) -> None:
    assert problems(shared(layout, instances), device) == ""


@pytest.mark.parametrize(
    ("device", "layout", "instances", "driver", "words"),
    [
        (GB200, "all-3g.95gb", None, {}, "GB200 has no MIG layout all-3g.95gb"),
        (GB200, "all-3g.93gb", None, OLD_GB200, "GB200 has no MIG layout all-3g.93gb"),
        (GB200, "all-3g.95gb", None, OLD_GB200, ""),
        (GB200, "mine", {"3g.95gb": 3}, OLD_GB200, "3 x 3g.95gb do not fit"),
        (GB200, "mine", {"3g.95gb": 2, "1g.24gb": 2}, OLD_GB200, "do not fit"),
        (NEW, "all-1g.99gb", None, FUTURE, ""),
        (NEW, "all-1g.98gb", None, FUTURE, "has no MIG layout all-1g.98gb"),
        (NEW, "mine", {"1g.99gb": 8}, FUTURE, "do not fit"),
        (NEW, "mine", {"1g.99gb+me": 2}, FUTURE, "do not fit"),
        (RTX_5090, "all-1g.8gb", None, {RTX_5090: {}}, "MIG cannot divide"),
        (T4, "all-1g.8gb", None, {}, "MIG cannot divide T4"),
        (L40S, "all-1g.8gb", None, {}, "MIG cannot divide"),
        (A10, "mine", {"1g.8gb": 1}, {}, "MIG cannot divide"),
        (RTX, "mine", {"4g.96gb": 1, "1g.24gb": 1}, {}, "do not fit"),
        (RTX, "mine", {"1g.24gb+me.all": 2}, {}, "do not fit"),
    ],
)  # fmt: skip
def test_the_driver_counts_for_more_than_the_table(
    device: int, layout: str, instances: dict[str, int], driver: DriverProfiles, words: str
) -> None:
    reported = problems(shared(layout, instances), device, driver)
    assert words in reported
    assert bool(reported) is bool(words)


def test_what_gpuboot_cannot_write_beside_own_layouts_is_named() -> None:
    """With a file of ours the MIG manager asks no driver what a layout of its own is."""
    instances = {"1g.99gb": 7}
    settings = shared("all-balanced", instances, other={"mig": "mine"})
    assert "beside mine the MIG manager cannot ask the driver" in problems(settings, NEW)
    assert problems(settings, GB200) == ""
    # one model's names are another's: the file names no devices then
    assert problems(shared("all-1g.23gb", instances, other={"mig": "mine"}), NEW) == ""
    assert "cannot ask" in problems(shared("all-1g.99gb", instances, other={"mig": "mine"}), NEW)


def test_what_a_node_offers_by_its_driver() -> None:
    settings = shared("all-1g.99gb")
    offer = sharing.offer(NODE, settings, (NEW, NEW), FUTURE)
    assert (dict(offer.resources), offer.counted) == ({"nvidia.com/mig-1g.99gb": 14}, True)
    assert sharing.expected_share(NODE, settings, (NEW, NEW), FUTURE)["layout"] == {"1g.99gb": 14}
    balanced = sharing.offer(NODE, shared("all-balanced"), (NEW,), FUTURE)
    assert balanced.resources == {
        "nvidia.com/mig-1g.99gb": 2, "nvidia.com/mig-2g.198gb": 1, "nvidia.com/mig-3g.396gb": 1,
    }  # fmt: skip


def test_before_the_driver_runs_any_number_is_right_once_the_layout_is_made() -> None:
    settings = shared("all-1g.99gb")
    offer = sharing.offer(NODE, settings, (NEW, NEW))
    assert not offer.counted
    assert sharing.expected_share(NODE, settings, (NEW, NEW))["layout"] is None
    labels = {**{name: value for name, value in offer.labels.items() if value}}
    ready_labels = labels | {sharing.MIG_STATE: "success"}
    assert missing_reason(offer, labels, {}) == "MIG layout all-1g.99gb: none"
    assert (
        missing_reason(offer, ready_labels, {"nvidia.com/gpu": "0"}) == "no GPU and no MIG instance"
    )
    assert missing_reason(offer, ready_labels, {"nvidia.com/mig-1g.99gb": "14"}) == ""


def missing_reason(offer: Offer, labels: dict[str, str], allocatable: dict[str, str]) -> str:
    return offers.offer_problem(node_status(labels, **allocatable), offer)


def test_two_kinds_of_gpus_in_a_host_are_told_apart_by_their_ids() -> None:
    driver = FUTURE | OLD_GB200
    assert driver_mig.counts(NEW, driver) == FUTURE[NEW]
    assert driver_mig.counts(GB200, driver) == OLD_GB200[GB200]
    assert driver_mig.counts(0x3FFE, driver) is None
