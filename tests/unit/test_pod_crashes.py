"""Crash loops, by pods as the API server has them, and which of them a run ends itself."""

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.cluster.pod_crashes import Crash, crash, telling, to_restart
from gpuboot.cluster.pods import parse_pod

ENDED_AT = 1_795_348_800.0  # 2026-11-22T12:00:00Z
FLANNEL: dict[str, Any] = {
    "metadata": {
        "name": "kube-flannel-ds-8hq4x",
        "namespace": "kube-flannel",
        "ownerReferences": [{"kind": "DaemonSet", "name": "kube-flannel-ds", "controller": True}],
    },
    "spec": {"nodeName": "gpu1"},
    "status": {
        "phase": "Running",
        "initContainerStatuses": [
            {"name": "install-cni", "state": {"terminated": {"exitCode": 0}}, "lastState": {}}
        ],
        "containerStatuses": [
            {
                "name": "kube-flannel",
                "restartCount": 5,
                "state": {
                    "waiting": {
                        "reason": "CrashLoopBackOff",
                        "message": "back-off 2m40s restarting failed container=kube-flannel "
                        "pod=kube-flannel-ds-8hq4x_kube-flannel(1b6a)",
                    }
                },
                "lastState": {
                    "terminated": {
                        "exitCode": 2,
                        "reason": "Error",
                        "finishedAt": "2026-11-22T12:00:00Z",
                    }
                },
            }
        ],
    },
}
LOOP = Crash(
    "kube-flannel", "kube-flannel-ds-8hq4x", "gpu1", "kube-flannel", "DaemonSet kube-flannel-ds",
    count=5, code=2, reason="Error", ended_at=ENDED_AT, pause_s=160.0,
)  # fmt: skip
OWN_PODS = {"kube-flannel": [""], "kube-system": ["coredns-", "kube-proxy-"]}


def test_a_crash_loop() -> None:
    assert crash(parse_pod(FLANNEL)) == LOOP
    text = "CrashLoopBackOff in kube-flannel, started again 5 times, ended with 2 (Error)"
    assert str(LOOP) == text


def test_a_pod_that_waits_for_something_else() -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pod = {**FLANNEL, "status": {"containerStatuses": [waiting]}}
    assert crash(parse_pod(pod)) is None
    assert crash(parse_pod({"metadata": FLANNEL["metadata"]})) is None


def test_a_static_pod_has_nobody_who_makes_it_again() -> None:
    owner = {"kind": "Node", "name": "cp1", "controller": True}
    meta = {
        "name": "etcd-cp1",
        "namespace": "kube-system",
        "annotations": {"kubernetes.io/config.mirror": "x"},
        "ownerReferences": [owner],
    }
    crash_loop = crash(parse_pod({**FLANNEL, "metadata": meta}))
    assert crash_loop is not None
    assert crash_loop.owner == ""
    assert to_restart([crash_loop], ENDED_AT, {"kube-system": [""]}) == []


@pytest.mark.parametrize(
    ("change", "after_s", "restarted"),
    [
        ({}, 10, True),
        ({}, 145, False),  # the kubelet is about to do so itself
        ({"pause_s": 20.0}, 1, False),
        ({"pause_s": 300.0}, 60, True),
        ({"owner": ""}, 10, False),
        ({"namespace": "shop"}, 10, False),
        ({"namespace": "kube-system", "pod": "coredns-7c65-x"}, 10, True),
        ({"namespace": "kube-system", "pod": "metrics-server-x"}, 10, False),
    ],
)
def test_what_is_started_anew(change: dict[str, Any], after_s: float, restarted: bool) -> None:
    item = replace(LOOP, **change)
    assert to_restart([item], ENDED_AT + after_s, OWN_PODS) == ([item] if restarted else [])


def test_what_a_program_ended_with_stands_above_its_stack() -> None:
    panic = [
        'I1123 07:20:11.100000       1 main.go:236] CLI flags config: {healthzIP:"127.0.0.1"}',
        "E1123 07:20:11.123456       1 main.go:582] Start healthz server error. listen tcp "
        "127.0.0.1:8081: bind: address already in use",
        "panic: listen tcp 127.0.0.1:8081: bind: address already in use",
        "",
        "goroutine 42 [running]:",
        "main.mustRunHealthz({0x2b3c4d0, 0xc000123450}, 0xc0001a2b40)",
        "\t/build/main.go:582 +0x275",
        "created by main.main in goroutine 1",
        "\t/build/main.go:310 +0xa3c",
    ]
    assert telling(panic)[-1] == "panic: listen tcp 127.0.0.1:8081: bind: address already in use"
    assert telling(panic[6:]) == panic[6:], "better than nothing"
    assert telling([f"line {number}" for number in range(9)])[0] == "line 4"
    assert telling([]) == []
