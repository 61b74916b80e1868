"""What keeps a repair from being begun: people, limits, the breaker, blindness."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gpuboot.cluster.objects import seconds
from gpuboot.cluster.repair_keys import BREAKER, STATE_KEY, STOP
from gpuboot.config.settings.remediate import within
from tests.unit.repair_site import (
    RECOVERY_RESET,
    REMAP,
    START,
    XID_79,
    Site,
    site,
    why_not,
)


def _label(fake_site: Site) -> None:
    fake_site.nodes["gpu1"]["metadata"]["labels"]["gpuboot.io/remediate"] = "off"


def _control_plane(fake_site: Site) -> None:
    fake_site.nodes["gpu1"]["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = ""


def _taint(fake_site: Site) -> None:
    fake_site.nodes["gpu1"]["spec"]["taints"] = [{"key": "gpu-quarantine", "effect": "NoSchedule"}]


def _not_ready(fake_site: Site) -> None:
    fake_site.nodes["gpu1"]["status"]["conditions"][0]["status"] = "Unknown"


def _edited(fake_site: Site) -> None:
    fake_site.nodes["gpu1"]["metadata"]["annotations"] = {STATE_KEY: "mine"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_label, "gpuboot.io/remediate=off"),
        (_control_plane, "control plane"),
        (_taint, "somebody else has put the taint"),
        (_not_ready, "not Ready"),
        (_edited, "Invalid JSON"),
        (lambda fake_site: fake_site.cordon("gpu1"), "somebody else has cordoned it"),
    ],
)
def test_what_people_have_said_goes_first(change: Any, reason: str) -> None:
    fake_site = site().fault("gpu1", XID_79)
    change(fake_site)
    fake_site.runs()
    assert reason in why_not(fake_site)
    assert fake_site.writes == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda fake_site: fake_site.maps.update({STOP: {"why": "audit"}}),
            "(audit); to go on: kubectl",
        ),
        (lambda fake_site: setattr(fake_site, "scrape_age", 200), "newest sample is 200 s old"),
        (
            lambda fake_site: setattr(fake_site, "rules_age", 200),
            "evaluation of an alert is 200 s old",
        ),
    ],
)
def test_what_stops_everything(change: Any, reason: str) -> None:
    fake_site = site().fault("gpu1", XID_79)
    fake_site.runs(1)
    assert fake_site.states()["gpu1"] == "observed"
    change(fake_site)
    before = list(fake_site.writes)
    fake_site.runs()
    assert reason in why_not(fake_site)
    assert fake_site.writes == before


@pytest.mark.parametrize(("job", "state"), [("drain", "draining"), ("reset", "repairing")])
def test_a_node_that_is_emptied_goes_on_while_prometheus_is_silent(job: str, state: str) -> None:
    """It may be what waits for the node: its volume is there."""
    fake_site = site().fault("gpu1", RECOVERY_RESET)
    fake_site.undecided = {job}
    fake_site.runs(3)
    assert fake_site.states()["gpu1"] == state
    fake_site.undecided, fake_site.scrape_age = set(), 500.0
    fake_site.fault("gpu2", XID_79).runs(1)
    assert fake_site.states() == {"gpu1": "released", "gpu2": None, "gpu3": None, "gpu4": None}


def test_without_monitoring_nobody_tells_of_faults() -> None:
    fake_site = site()
    fake_site.settings = fake_site.settings.model_copy(
        update={"monitoring": fake_site.settings.monitoring.model_copy(update={"enabled": False})}
    )
    fake_site.nodes["gpu1"]["status"]["allocatable"]["nvidia.com/gpu"] = "3"
    assert "monitoring.enabled is off" in why_not(fake_site)


def test_one_node_at_a_time() -> None:
    fake_site = site(8).fault("gpu1", REMAP, cure="never").fault("gpu2", XID_79, cure="reboot")
    fake_site.runs(20)
    assert fake_site.tainted() == {"gpu1"}
    assert "1 of 1 nodes that may be out of service are: gpu1" in why_not(fake_site, "gpu2")
    fake_site = site(8, max_nodes="25%").fault("gpu1", REMAP, cure="never").fault("gpu2", XID_79)
    fake_site.cure["gpu2"] = "reboot"
    fake_site.runs()
    assert fake_site.states()["gpu2"] == "released"


def test_some_gpus_of_a_model_stay_in_service() -> None:
    fake_site = site(2, min_healthy_percent=60).fault("gpu1", XID_79).runs()
    assert fake_site.states()["gpu1"] == "confirmed"
    assert "4 of 8 GPUs of H100 would stay in service" in why_not(fake_site)


def test_a_node_rests_after_its_repair() -> None:
    fake_site = site().fault("gpu1", RECOVERY_RESET).runs()
    fake_site.fault("gpu1", RECOVERY_RESET).runs(20)
    assert fake_site.states()["gpu1"] == "confirmed"
    assert "rests until" in why_not(fake_site)
    assert fake_site.did.count(("reset", "gpu1")) == 1


def test_a_node_that_breaks_again_and_again_is_for_a_person() -> None:
    fake_site = site(cooldown_h=1)
    for _ in range(3):
        fake_site.fault("gpu1", RECOVERY_RESET).runs(60)
    assert fake_site.did.count(("reset", "gpu1")) == 2
    assert fake_site.states()["gpu1"] == "failed"
    assert "repaired 2 times in seven days" in why_not(fake_site)


def test_actions_that_are_not_allowed() -> None:
    fake_site = site(actions=["reset", "manual"]).fault("gpu1", XID_79).runs()
    assert fake_site.states()["gpu1"] == "confirmed"
    assert "remediate.actions does not have reboot" in why_not(fake_site)


def test_outside_of_its_windows_nothing_begins() -> None:
    clock = datetime.fromtimestamp(START, UTC).strftime("%H")
    closed_window = f"{(int(clock) + 3) % 24:02}:00-{(int(clock) + 4) % 24:02}:00"
    fake_site = site(windows=[closed_window]).fault("gpu1", XID_79).runs()
    assert fake_site.tainted() == set()
    assert "outside of remediate.windows" in why_not(fake_site)


@pytest.mark.parametrize(
    ("window", "moment", "inside"),
    [
        ("02:00-04:00", "2026-11-23T03:59:00Z", True),
        ("02:00-04:00", "2026-11-23T04:00:00Z", False),
        ("22:00-06:00", "2026-11-23T05:00:00Z", True),
        ("22:00-06:00", "2026-11-23T12:00:00Z", False),
        ("Mon-Fri 22:00-06:00", "2026-11-28T05:00:00Z", True),  # Friday's, on Saturday
        ("Mon-Fri 22:00-06:00", "2026-11-28T23:00:00Z", False),
        ("Mon-Fri 22:00-06:00", "2026-11-23T05:00:00Z", False),  # Sunday's, on Monday
        ("Sat-Mon 01:00-02:00", "2026-11-22T01:30:00Z", True),
        ("Sat-Mon 01:00-02:00", "2026-11-24T01:30:00Z", False),
        ("Sun 01:00-02:00", "2026-11-22T01:30:00Z", True),
    ],
)
def test_windows(window: str, moment: str, inside: bool) -> None:
    assert within((window,), seconds(moment)) is inside
    assert within((), seconds(moment))


def test_the_breaker_opens_when_many_ask_at_once_and_stays_open() -> None:
    fake_site = site(4, breaker_share="50%", max_nodes=4, min_healthy_percent=0)
    for name in ("gpu1", "gpu2"):
        fake_site.fault(name, XID_79, cure="reboot")
    fake_site.runs(30)
    assert BREAKER in fake_site.maps
    assert fake_site.tainted() == set()
    assert "the breaker is open: 2 of 4 GPU nodes" in why_not(fake_site)
    del fake_site.maps[BREAKER]
    fake_site.runs(30)
    assert set(fake_site.did) >= {("reboot", "gpu1"), ("reboot", "gpu2")}


def test_one_node_of_a_small_cluster_opens_no_breaker() -> None:
    fake_site = (
        site(2, breaker_share="10%", breaker_window_s=7200).fault("gpu1", RECOVERY_RESET).runs()
    )
    assert fake_site.states()["gpu1"] == "released"
    assert fake_site.maps == {}
