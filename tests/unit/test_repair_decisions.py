"""What comes next for a node under repair, from the first sign to its end."""

from __future__ import annotations

import pytest

from gpuboot.cluster.repair_keys import PAST_KEY, STATE_KEY
from gpuboot.repair import repair_model
from gpuboot.repair.repair_model import Past, Repair
from tests.unit.repair_site import (
    GPU_LOST,
    HEALTH,
    HOT,
    RECOVERY_REBOOT,
    RECOVERY_RESET,
    REMAP,
    START,
    XID_79,
    XID_119,
    Site,
    site,
    uuid,
    why_not,
)


def path(fake_site: Site, node: str = "gpu1") -> list[str | None]:
    """The states that a node came to, one after the other."""
    return [transition["to"] for transition in fake_site.log_entries if transition["node"] == node]


WAY = ["observed", "confirmed", "quarantined", "draining", "drained", "repairing", "validating"]


def test_a_reset_from_the_first_sign_to_service() -> None:
    fake_site = site().fault("gpu1", XID_119, HEALTH).runs()
    assert path(fake_site) == [*WAY, "released"]
    assert fake_site.did == [("drain", "gpu1"), ("reset", "gpu1"), ("prove", "gpu1")]
    node = fake_site.node("gpu1")
    assert not node.tainted
    assert not node.cordoned
    assert [repair.end for repair in node.past] == ["released"]
    assert len(fake_site.events) == len(fake_site.log_entries) == 8
    assert fake_site.events[2]["reason"] == "RepairQuarantined"
    assert fake_site.events[2]["type"] == "Warning"
    assert fake_site.log_entries[2]["gpus"] == [uuid("gpu1")]


def test_xid_79_reboots_its_node() -> None:
    fake_site = site().fault("gpu1", XID_79, GPU_LOST, cure="reboot").runs()
    assert fake_site.did == [("drain", "gpu1"), ("reboot", "gpu1"), ("prove", "gpu1")]
    assert fake_site.states()["gpu1"] == "released"


def test_after_an_hour_nothing_is_left_but_the_memory() -> None:
    fake_site = site().fault("gpu1", RECOVERY_RESET).runs(40)
    assert path(fake_site) == [*WAY, "released", None]
    notes = fake_site.nodes["gpu1"]["metadata"]["annotations"]
    assert STATE_KEY not in notes
    assert [repair.action for repair in repair_model.load_past(notes[PAST_KEY])] == ["reset"]


def test_a_gpu_that_is_to_be_replaced_waits_for_a_person() -> None:
    fake_site = site().fault("gpu1", REMAP, cure="never").runs(20)
    assert path(fake_site) == [*WAY[:-1], "repairing"], "the last tells where the bundle is"
    assert fake_site.did == [("drain", "gpu1"), ("hand_over", "gpu1")]
    bundle = "admin:/bundles/gpu1.tar.gz"
    assert why_not(fake_site) == f"a person has to repair it; what is known of it: {bundle}"


def test_a_reset_that_does_not_help_is_followed_by_a_reboot_and_that_by_a_person() -> None:
    fake_site = site().fault("gpu1", RECOVERY_RESET, cure="reboot").runs()
    jobs = [job for job, _ in fake_site.did]
    assert jobs == ["drain", "reset", "prove", "reboot", "prove"]
    assert fake_site.states()["gpu1"] == "released"
    fake_site = site().fault("gpu1", RECOVERY_RESET, cure="never").runs(20)
    assert [job for job, _ in fake_site.did] == [*jobs, "hand_over"]
    assert fake_site.states()["gpu1"] == "failed"
    assert fake_site.tainted() == {"gpu1"}
    assert "vectorAdd failed" in why_not(fake_site)


def test_a_reboot_that_is_not_allowed_does_not_follow() -> None:
    fake_site = site(actions=["reset"]).fault("gpu1", RECOVERY_RESET, cure="reboot").runs()
    assert fake_site.states()["gpu1"] == "failed"


def test_a_reset_becomes_a_reboot_while_pods_leave() -> None:
    fake_site = site().fault("gpu1", RECOVERY_RESET, cure="reboot")
    fake_site.blocked = {"gpu1"}
    fake_site.runs(3)
    assert fake_site.states()["gpu1"] == "draining"
    fake_site.fault("gpu1", RECOVERY_RESET, RECOVERY_REBOOT, cure="reboot").blocked = set()
    fake_site.runs()
    assert ("reset", "gpu1") not in fake_site.did
    assert fake_site.states()["gpu1"] == "released"


def test_a_budget_that_lets_no_pod_go_is_waited_for() -> None:
    fake_site = site().fault("gpu1", RECOVERY_RESET)
    fake_site.blocked = {"gpu1"}
    fake_site.runs(10)
    assert fake_site.states()["gpu1"] == "draining"
    assert fake_site.did == [("drain", "gpu1")] * 2, "every ten minutes"
    reasons = why_not(fake_site)
    assert "PodDisruptionBudget ml/train; it is tried again at 2025-" in reasons
    fake_site = site(retry_s=0).fault("gpu1", RECOVERY_RESET)
    fake_site.blocked = {"gpu1"}
    assert fake_site.runs(10).did == [("drain", "gpu1")] * 9, "once a run"


def test_work_without_a_verdict_is_done_again() -> None:
    fake_site = site().fault("gpu1", RECOVERY_RESET)
    fake_site.undecided = {"prove", "reset"}
    fake_site.runs(5)
    assert fake_site.states()["gpu1"] == "repairing"
    assert [transition["why"] for transition in fake_site.log_entries][
        -1
    ] == "reset: to be done again: reset: no connection"
    assert path(fake_site).count("repairing") == 2, "told once"
    fake_site.undecided = {"prove"}
    fake_site.runs(3)
    assert fake_site.states()["gpu1"] == "validating"
    fake_site.undecided = set()
    fake_site.runs(1)
    assert fake_site.states()["gpu1"] == "released"
    assert fake_site.did == [("drain", "gpu1"), ("reset", "gpu1"), ("prove", "gpu1")]


def test_a_bundle_that_cannot_be_written_hides_no_reason() -> None:
    fake_site = site().fault("gpu1", RECOVERY_RESET, cure="never")
    fake_site.undecided = {"hand_over"}
    fake_site.runs(20)
    assert (
        fake_site.node("gpu1").repair or Repair(state="failed", since=0)
    ).note == "vectorAdd failed"
    fake_site.undecided = set()
    fake_site.runs(1)
    assert "vectorAdd failed; what is known of it: admin:/bundles" in why_not(fake_site)


def test_nothing_is_done_to_nodes_while_another_run_changes_the_site() -> None:
    fake_site = site().fault("gpu1", RECOVERY_RESET)
    fake_site.refusal = "another run changes this site"
    fake_site.runs(5)
    assert path(fake_site) == ["observed", "confirmed"]
    assert fake_site.did == []
    fake_site.refusal = ""
    fake_site.runs(1)
    assert fake_site.states()["gpu1"] == "released"


@pytest.mark.parametrize("alerts", [[HOT], [HEALTH | {"health_watch": "THERMAL"}],
                                    [{"alertname": "GPUExporterDown"}]])  # fmt: skip
def test_what_is_no_fault_of_a_gpu_writes_nothing(alerts: list[dict[str, str]]) -> None:
    fake_site = site().fault("gpu1", *alerts).runs()
    assert fake_site.writes == []


def test_what_passes_is_forgotten() -> None:
    fake_site = site().fault("gpu1", XID_79)
    fake_site.run()
    assert fake_site.states()["gpu1"] == "observed"
    fake_site.faults.clear()
    fake_site.runs(2)
    assert path(fake_site) == ["observed", None]
    assert fake_site.did == []


def test_one_sign_is_noted_and_waits_for_another() -> None:
    fake_site = site().fault("gpu1", XID_119).runs(10)
    assert path(fake_site) == ["observed"]
    assert "not enough" in why_not(fake_site)
    fake_site.fault("gpu1", XID_119, HEALTH)
    fake_site.run()
    assert path(fake_site) == ["observed", "observed"], "from now on it has to last"
    assert "waited until" in why_not(fake_site)


@pytest.mark.parametrize("method", ["cordon", "taint"])
def test_a_person_ends_a_repair(method: str) -> None:
    fake_site = site().fault("gpu1", REMAP, cure="never").runs()
    if method == "cordon":
        fake_site.cordon("gpu1", on=False)
    else:
        fake_site.untaint("gpu1")
    fake_site.runs(20)
    assert fake_site.log_entries[len(WAY)]["why"].startswith("cancelled: somebody")
    node = fake_site.node("gpu1")
    assert [repair.end for repair in node.past] == ["cancelled"]
    assert not node.tainted
    assert node.cordoned == (method == "taint"), "what they left they keep"
    reason = "taken back by somebody" if method == "cordon" else "somebody else has cordoned it"
    assert reason in why_not(fake_site)


def test_annotations_are_read_as_they_were_written() -> None:
    repair = Repair(
        state="repairing", since=START, case_at=START - 60, action="reset", gpus=("GPU-a",),
        reason="xid-119", why="why", boot="b", cordoned=True, note="n",
    )  # fmt: skip
    assert repair_model.load(repair_model.dump(repair)) == repair
    past = (Past(case_at=START, at=START + 9, action=None, end="cancelled"),)
    assert repair_model.load_past(repair_model.dump_past(past)) == past
    many = past * 12
    assert len(repair_model.load_past(repair_model.dump_past(many))) == 10
    for text in (
        "",
        "[]",
        '{"state": "lost", "since": "2026-11-23T03:00:00Z"}',
        '{"state": "failed"}',
    ):
        with pytest.raises(repair_model.AnnotationError):
            repair_model.load(text)
    with pytest.raises(repair_model.AnnotationError):
        repair_model.load_past('[{"at": 3}]')


def test_nothing_is_waited_for_where_the_settings_say_so() -> None:
    fake_site = site(confirm_s=0, watch_s=0).fault("gpu1", RECOVERY_RESET).runs(1)
    assert path(fake_site) == [*WAY, "released", None]
