"""Waits for what is deleted: claims that pods use, volumes that nobody deletes, what stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.cluster import volumes
from gpuboot.cluster.cluster_state import ClusterState, PodIssue
from gpuboot.cluster.objects import Claim
from gpuboot.cluster.stuck import CERTAIN_S, UNCERTAIN_S, Patience
from gpuboot.cluster.switched_off_parts import going
from gpuboot.cluster.volumes import Volume, Volumes
from gpuboot.cluster.workloads import Workload

CLAIM = Claim("m", "db-0", "5Gi", "local-path", "pvc-1")
VOLUME = Volume("pvc-1", "local-path", "rancher.io/local-path", "m/db-0")
PROVISIONER = Workload("Deployment", "local-path-storage", "local-path-provisioner", 1, 1, True, "")
STATE = ClusterState(workloads=(PROVISIONER,), clock=1000.0)
HELPER = PodIssue(
    "local-path-storage", "helper-pod-delete-pvc-1", "n1", "ErrImagePull: not found", kind="image"
)


@pytest.mark.parametrize(
    ("remaining", "is_done", "text"),
    [
        (Volumes(), True, ""),
        (Volumes(claims=(CLAIM,), volumes=(VOLUME,)), False, "m/db-0, volume pvc-1"),
        (Volumes(claims=(replace(CLAIM, namespace="other"),)), True, ""),
        (Volumes(volumes=(replace(VOLUME, reclaim="Retain"),)), True, ""),
        (Volumes(error="refused"), False, "refused"),
    ],
)
def test_claims_are_gone_with_their_volumes(remaining: Volumes, is_done: bool, text: str) -> None:
    look = volumes.deletion_progress(remaining, "m", ["db-0"], ["pvc-1"])
    assert look.complete is is_done
    assert text in look.text


@pytest.mark.parametrize(
    ("users", "state", "expected", "after_s"),
    [
        (["web-1\tdb-0 other", "web-2\tdb-0", "job\t"], STATE, "pod web-1, web-2", UNCERTAIN_S),
        ([], replace(STATE, pod_issues=(HELPER,)), "not found", 40.0),
        ([], replace(STATE, workloads=()), "it does not exist", CERTAIN_S),
    ],
)
def test_what_keeps_a_volume_is_told(
    users: list[str], state: ClusterState, expected: str, after_s: float
) -> None:
    look = volumes.deletion_progress(Volumes(claims=(CLAIM,)), "m", ["db-0"], ["pvc-1"])
    progress = volumes.held_up(look, volumes.parse_users(users), ["db-0"], state)
    [reason] = progress.stuck
    assert expected in reason.cause
    assert expected in progress.text
    assert reason.after_s == after_s


def test_what_may_only_need_time_is_waited_for() -> None:
    look = volumes.deletion_progress(Volumes(claims=(CLAIM,)), "m", ["db-0"], ["pvc-1"])
    assert volumes.held_up(look, {}, ["db-0"], STATE).stuck == ()


def test_a_removal_ends_when_nothing_goes_any_more() -> None:
    patience = Patience()
    three, two = (going(["Pod a", "Pod b", "Pod c"][:count], "web", "w") for count in (3, 2))
    assert patience.over(three.stuck, three.ready, 0) == []
    assert patience.over(two.stuck, two.ready, 140) == []
    assert patience.over(two.stuck, two.ready, 200) == []
    assert [item.subject for item in patience.over(two.stuck, two.ready, 290)] == [
        "Pod a of web",
        "Pod b of web",
    ]
    assert going([], "web", "w").complete
