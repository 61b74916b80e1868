"""What comes next for a node under repair, from the first sign to its end."""

from __future__ import annotations

import pytest

from gpuboot.kubernetes.repair import model
from gpuboot.kubernetes.repair.model import PAST_KEY, STATE_KEY, Past, Repair
from tests.unit.repair_site import (
    HEALTH,
    HOT,
    LOST,
    REBOOT_ASKED,
    REMAP,
    RESET_ASKED,
    START,
    XID_79,
    XID_119,
    Site,
    site,
    uuid,
    why_not,
)


def path(made: Site, node: str = "gpu1") -> list[str | None]:
    """The states that a node came to, one after the other."""
    return [one["to"] for one in made.told if one["node"] == node]


WAY = ["observed", "confirmed", "quarantined", "draining", "drained", "repairing", "validating"]


def test_a_reset_from_the_first_sign_to_service() -> None:
    made = site().fault("gpu1", XID_119, HEALTH).runs()
    assert path(made) == [*WAY, "released"]
    assert made.did == [("drain", "gpu1"), ("reset", "gpu1"), ("prove", "gpu1")]
    node = made.node("gpu1")
    assert not node.tainted
    assert not node.cordoned
    assert [one.end for one in node.past] == ["released"]
    assert len(made.events) == len(made.told) == 8
    assert made.events[2]["reason"] == "RepairQuarantined"
    assert made.events[2]["type"] == "Warning"
    assert made.told[2]["gpus"] == [uuid("gpu1")]


def test_xid_79_reboots_its_node() -> None:
    made = site().fault("gpu1", XID_79, LOST, cure="reboot").runs()
    assert made.did == [("drain", "gpu1"), ("reboot", "gpu1"), ("prove", "gpu1")]
    assert made.states()["gpu1"] == "released"


def test_after_an_hour_nothing_is_left_but_the_memory() -> None:
    made = site().fault("gpu1", RESET_ASKED).runs(40)
    assert path(made) == [*WAY, "released", None]
    notes = made.nodes["gpu1"]["metadata"]["annotations"]
    assert STATE_KEY not in notes
    assert [one.action for one in model.load_past(notes[PAST_KEY])] == ["reset"]


def test_a_gpu_that_is_to_be_replaced_waits_for_a_person() -> None:
    made = site().fault("gpu1", REMAP, cure="never").runs(20)
    assert path(made) == [*WAY[:-1], "repairing"], "the last tells where the bundle is"
    assert made.did == [("drain", "gpu1"), ("hand_over", "gpu1")]
    where = "admin:/bundles/gpu1.tar.gz"
    assert why_not(made) == f"a person has to repair it; what is known of it: {where}"


def test_a_reset_that_does_not_help_is_followed_by_a_reboot_and_that_by_a_person() -> None:
    made = site().fault("gpu1", RESET_ASKED, cure="reboot").runs()
    jobs = [job for job, _ in made.did]
    assert jobs == ["drain", "reset", "prove", "reboot", "prove"]
    assert made.states()["gpu1"] == "released"
    made = site().fault("gpu1", RESET_ASKED, cure="never").runs(20)
    assert [job for job, _ in made.did] == [*jobs, "hand_over"]
    assert made.states()["gpu1"] == "failed"
    assert made.tainted() == {"gpu1"}
    assert "vectorAdd failed" in why_not(made)


def test_a_reboot_that_is_not_allowed_does_not_follow() -> None:
    made = site(actions=["reset"]).fault("gpu1", RESET_ASKED, cure="reboot").runs()
    assert made.states()["gpu1"] == "failed"


def test_a_reset_becomes_a_reboot_while_pods_leave() -> None:
    made = site().fault("gpu1", RESET_ASKED, cure="reboot")
    made.blocked = {"gpu1"}
    made.runs(3)
    assert made.states()["gpu1"] == "draining"
    made.fault("gpu1", RESET_ASKED, REBOOT_ASKED, cure="reboot").blocked = set()
    made.runs()
    assert ("reset", "gpu1") not in made.did
    assert made.states()["gpu1"] == "released"


def test_a_budget_that_lets_no_pod_go_is_waited_for() -> None:
    made = site().fault("gpu1", RESET_ASKED)
    made.blocked = {"gpu1"}
    made.runs(10)
    assert made.states()["gpu1"] == "draining"
    assert made.did == [("drain", "gpu1")] * 2, "every ten minutes"
    reasons = why_not(made)
    assert "PodDisruptionBudget ml/train; it is tried again at 2025-" in reasons
    made = site(retry_s=0).fault("gpu1", RESET_ASKED)
    made.blocked = {"gpu1"}
    assert made.runs(10).did == [("drain", "gpu1")] * 9, "once a run"


def test_work_without_a_verdict_is_done_again() -> None:
    made = site().fault("gpu1", RESET_ASKED)
    made.undecided = {"prove", "reset"}
    made.runs(5)
    assert made.states()["gpu1"] == "repairing"
    assert [one["why"] for one in made.told][-1] == "reset: to be done again: reset: no connection"
    assert path(made).count("repairing") == 2, "told once"
    made.undecided = {"prove"}
    made.runs(3)
    assert made.states()["gpu1"] == "validating"
    made.undecided = set()
    made.runs(1)
    assert made.states()["gpu1"] == "released"
    assert made.did == [("drain", "gpu1"), ("reset", "gpu1"), ("prove", "gpu1")]


def test_a_bundle_that_cannot_be_written_hides_no_reason() -> None:
    made = site().fault("gpu1", RESET_ASKED, cure="never")
    made.undecided = {"hand_over"}
    made.runs(20)
    assert (made.node("gpu1").repair or Repair(state="failed", since=0)).note == "vectorAdd failed"
    made.undecided = set()
    made.runs(1)
    assert "vectorAdd failed; what is known of it: admin:/bundles" in why_not(made)


def test_nothing_is_done_to_nodes_while_another_run_changes_the_site() -> None:
    made = site().fault("gpu1", RESET_ASKED)
    made.refused = "another run changes this site"
    made.runs(5)
    assert path(made) == ["observed", "confirmed"]
    assert made.did == []
    made.refused = ""
    made.runs(1)
    assert made.states()["gpu1"] == "released"


@pytest.mark.parametrize("alerts", [[HOT], [HEALTH | {"health_watch": "THERMAL"}],
                                    [{"alertname": "GPUExporterDown"}]])  # fmt: skip
def test_what_is_no_fault_of_a_gpu_writes_nothing(alerts: list[dict[str, str]]) -> None:
    made = site().fault("gpu1", *alerts).runs()
    assert made.writes == []


def test_what_passes_is_forgotten() -> None:
    made = site().fault("gpu1", XID_79)
    made.run()
    assert made.states()["gpu1"] == "observed"
    made.faults.clear()
    made.runs(2)
    assert path(made) == ["observed", None]
    assert made.did == []


def test_one_sign_is_noted_and_waits_for_another() -> None:
    made = site().fault("gpu1", XID_119).runs(10)
    assert path(made) == ["observed"]
    assert "not enough" in why_not(made)
    made.fault("gpu1", XID_119, HEALTH)
    made.run()
    assert path(made) == ["observed", "observed"], "from now on it has to last"
    assert "waited until" in why_not(made)


@pytest.mark.parametrize("how", ["cordon", "taint"])
def test_a_person_ends_a_repair(how: str) -> None:
    made = site().fault("gpu1", REMAP, cure="never").runs()
    if how == "cordon":
        made.cordon("gpu1", on=False)
    else:
        made.untaint("gpu1")
    made.runs(20)
    assert made.told[len(WAY)]["why"].startswith("cancelled: somebody")
    node = made.node("gpu1")
    assert [one.end for one in node.past] == ["cancelled"]
    assert not node.tainted
    assert node.cordoned == (how == "taint"), "what they left they keep"
    said = "taken back by somebody" if how == "cordon" else "somebody else has cordoned it"
    assert said in why_not(made)


def test_annotations_are_read_as_they_were_written() -> None:
    repair = Repair(
        state="repairing", since=START, case_at=START - 60, action="reset", gpus=("GPU-a",),
        reason="xid-119", why="why", boot="b", cordoned=True, note="n",
    )  # fmt: skip
    assert model.load(model.dump(repair)) == repair
    past = (Past(case_at=START, at=START + 9, action=None, end="cancelled"),)
    assert model.load_past(model.dump_past(past)) == past
    many = past * 12
    assert len(model.load_past(model.dump_past(many))) == 10
    for text in (
        "",
        "[]",
        '{"state": "lost", "since": "2026-11-23T03:00:00Z"}',
        '{"state": "failed"}',
    ):
        with pytest.raises(model.AnnotationError):
            model.load(text)
    with pytest.raises(model.AnnotationError):
        model.load_past('[{"at": 3}]')


def test_nothing_is_waited_for_where_the_settings_say_so() -> None:
    made = site(confirm_s=0, watch_s=0).fault("gpu1", RESET_ASKED).runs(1)
    assert path(made) == [*WAY, "released", None]
