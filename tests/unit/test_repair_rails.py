"""What keeps a repair from being begun: people, limits, the breaker, blindness."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gpuboot.config.settings.remediate import within
from gpuboot.kubernetes.repair import model
from gpuboot.kubernetes.repair.model import BREAKER, STATE_KEY, STOP
from tests.unit.repair_site import (
    REMAP,
    RESET_ASKED,
    START,
    XID_79,
    Site,
    site,
    why_not,
)


def _label(made: Site) -> None:
    made.nodes["gpu1"]["metadata"]["labels"]["gpuboot.io/remediate"] = "off"


def _control_plane(made: Site) -> None:
    made.nodes["gpu1"]["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = ""


def _taint(made: Site) -> None:
    made.nodes["gpu1"]["spec"]["taints"] = [{"key": "gpu-quarantine", "effect": "NoSchedule"}]


def _not_ready(made: Site) -> None:
    made.nodes["gpu1"]["status"]["conditions"][0]["status"] = "Unknown"


def _edited(made: Site) -> None:
    made.nodes["gpu1"]["metadata"]["annotations"] = {STATE_KEY: "mine"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_label, "gpuboot.io/remediate=off"),
        (_control_plane, "control plane"),
        (_taint, "somebody else has put the taint"),
        (_not_ready, "not Ready"),
        (_edited, "is no JSON"),
        (lambda made: made.cordon("gpu1"), "somebody else has cordoned it"),
    ],
)
def test_what_people_have_said_goes_first(change: Any, said: str) -> None:
    made = site().fault("gpu1", XID_79)
    change(made)
    made.runs()
    assert said in why_not(made)
    assert made.writes == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda made: made.maps.update({STOP: {"why": "audit"}}), "(audit); to go on: kubectl"),
        (lambda made: setattr(made, "scrape_age", 200), "newest sample is 200 s old"),
        (lambda made: setattr(made, "rules_age", 200), "evaluation of an alert is 200 s old"),
    ],
)
def test_what_stops_everything(change: Any, said: str) -> None:
    made = site().fault("gpu1", XID_79)
    made.runs(1)
    assert made.states()["gpu1"] == "observed"
    change(made)
    before = list(made.writes)
    made.runs()
    assert said in why_not(made)
    assert made.writes == before


@pytest.mark.parametrize(("job", "state"), [("drain", "draining"), ("reset", "repairing")])
def test_a_node_that_is_emptied_goes_on_while_prometheus_is_silent(job: str, state: str) -> None:
    """It may be what waits for the node: its volume is there."""
    made = site().fault("gpu1", RESET_ASKED)
    made.undecided = {job}
    made.runs(3)
    assert made.states()["gpu1"] == state
    made.undecided, made.scrape_age = set(), 500.0
    made.fault("gpu2", XID_79).runs(1)
    assert made.states() == {"gpu1": "released", "gpu2": None, "gpu3": None, "gpu4": None}


def test_without_monitoring_nobody_tells_of_faults() -> None:
    made = site()
    made.settings = made.settings.model_copy(
        update={"monitoring": made.settings.monitoring.model_copy(update={"enabled": False})}
    )
    made.nodes["gpu1"]["status"]["allocatable"]["nvidia.com/gpu"] = "3"
    assert "monitoring.enabled is off" in why_not(made)


def test_one_node_at_a_time() -> None:
    made = site(8).fault("gpu1", REMAP, cure="never").fault("gpu2", XID_79, cure="reboot")
    made.runs(20)
    assert made.tainted() == {"gpu1"}
    assert "1 of 1 nodes that may be out of service are: gpu1" in why_not(made, "gpu2")
    made = site(8, max_nodes="25%").fault("gpu1", REMAP, cure="never").fault("gpu2", XID_79)
    made.cure["gpu2"] = "reboot"
    made.runs()
    assert made.states()["gpu2"] == "released"


def test_some_gpus_of_a_model_stay_in_service() -> None:
    made = site(2, min_healthy_percent=60).fault("gpu1", XID_79).runs()
    assert made.states()["gpu1"] == "confirmed"
    assert "4 of 8 GPUs of H100 would stay in service" in why_not(made)


def test_a_node_rests_after_its_repair() -> None:
    made = site().fault("gpu1", RESET_ASKED).runs()
    made.fault("gpu1", RESET_ASKED).runs(20)
    assert made.states()["gpu1"] == "confirmed"
    assert "rests until" in why_not(made)
    assert made.did.count(("reset", "gpu1")) == 1


def test_a_node_that_breaks_again_and_again_is_for_a_person() -> None:
    made = site(cooldown_h=1)
    for _ in range(3):
        made.fault("gpu1", RESET_ASKED).runs(60)
    assert made.did.count(("reset", "gpu1")) == 2
    assert made.states()["gpu1"] == "failed"
    assert "repaired 2 times in seven days" in why_not(made)


def test_actions_that_are_not_allowed() -> None:
    made = site(actions=["reset", "manual"]).fault("gpu1", XID_79).runs()
    assert made.states()["gpu1"] == "confirmed"
    assert "remediate.actions does not have reboot" in why_not(made)


def test_outside_of_its_windows_nothing_begins() -> None:
    clock = datetime.fromtimestamp(START, UTC).strftime("%H")
    other = f"{(int(clock) + 3) % 24:02}:00-{(int(clock) + 4) % 24:02}:00"
    made = site(windows=[other]).fault("gpu1", XID_79).runs()
    assert made.tainted() == set()
    assert "outside of remediate.windows" in why_not(made)


@pytest.mark.parametrize(
    ("window", "moment", "there"),
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
def test_windows(window: str, moment: str, there: bool) -> None:
    assert within((window,), model.seconds(moment)) is there
    assert within((), model.seconds(moment))


def test_the_breaker_opens_when_many_ask_at_once_and_stays_open() -> None:
    made = site(4, breaker_share="50%", max_nodes=4, min_healthy_percent=0)
    for name in ("gpu1", "gpu2"):
        made.fault(name, XID_79, cure="reboot")
    made.runs(30)
    assert BREAKER in made.maps
    assert made.tainted() == set()
    assert "the breaker is open: 2 of 4 GPU nodes" in why_not(made)
    del made.maps[BREAKER]
    made.runs(30)
    assert set(made.did) >= {("reboot", "gpu1"), ("reboot", "gpu2")}


def test_one_node_of_a_small_cluster_opens_no_breaker() -> None:
    made = site(2, breaker_share="10%", breaker_window_s=7200).fault("gpu1", RESET_ASKED).runs()
    assert made.states()["gpu1"] == "released"
    assert made.maps == {}
