"""A pod of a verification that cannot start is given up long before the time is up."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.pods import parse_pod
from gpuboot.verify import session as module
from gpuboot.verify.session import Session

CREATING = {"reason": "ContainerCreating"}
SANDBOX = 'rpc error: desc = no runtime for "nvidia" is configured'


class Api:
    """Tells events, and refuses pods as a cluster without a controller manager does."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.events, self.reads = list(events), 0

    def json(self, path: str, query: Any = None) -> Any:
        self.reads += 1
        return {"items": self.events}

    def send(self, verb: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        if path.endswith("/pods") and verb == "POST":
            raise ClusterError('error looking up service account: serviceaccount "default"', 403)
        return {}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda s: now.__setitem__(0, now[0] + max(s, 0.5)))
    return now


def pod(waiting: dict[str, str], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "vectoradd-gpu1", "namespace": "v"},
        "spec": {"nodeName": "gpu1"},
        "status": {
            "phase": "Pending",
            "containerStatuses": [{"name": "gpu", "state": {"waiting": waiting}}],
            **status,
        },
    }


def sandbox() -> dict[str, Any]:
    involved_object = {"kind": "Pod", "namespace": "v", "name": "vectoradd-gpu1"}
    return {
        "reason": "FailedCreatePodSandBox",
        "involvedObject": involved_object,
        "message": SANDBOX,
    }


def given_up_after(api: Api, looked_at: dict[str, Any], clock: list[float]) -> tuple[float, str]:
    session = Session(cast(Cluster, api), lambda _: None, 300)
    while clock[0] < 300:
        issue = session.issue(parse_pod(looked_at))
        if issue.failed:
            return clock[0], issue.error
        clock[0] += 1
    return clock[0], issue.error


def test_a_pod_without_a_sandbox_is_given_up_with_the_event(clock: list[float]) -> None:
    api = Api(sandbox())
    elapsed, reason = given_up_after(api, pod(CREATING), clock)
    assert elapsed == 45
    assert SANDBOX in reason
    assert api.reads <= 10


@pytest.mark.parametrize(
    ("message", "limit_s"),
    [('failed to pull image "x:1": not found', 40), ("dial tcp: i/o timeout", 150)],
)
def test_an_image_that_the_registry_has_not_is_given_up_sooner_than_a_network(
    clock: list[float], message: str, limit_s: float
) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": message}
    elapsed, reason = given_up_after(Api(), pod(waiting), clock)
    assert elapsed == limit_s
    assert message in reason


def test_a_pod_that_pulls_a_large_image_is_not_given_up(clock: list[float]) -> None:
    conditions = [{"type": "PodReadyToStartContainers", "status": "True"}]
    assert given_up_after(Api(sandbox()), pod(CREATING, conditions=conditions), clock)[0] == 300


def test_a_pod_that_runs_is_asked_nothing(clock: list[float]) -> None:
    api = Api(sandbox())
    running = pod(CREATING) | {"status": {"phase": "Running"}}
    assert not Session(cast(Cluster, api), lambda _: None, 300).issue(parse_pod(running)).failed
    assert api.reads == 0


def test_a_service_account_that_nobody_makes_is_told(clock: list[float]) -> None:
    session = Session(cast(Cluster, Api()), lambda _: None, 300)
    with pytest.raises(ClusterError, match=r"kube-controller-manager has made none for 30 s"):
        session._create({"metadata": {"name": "x"}})
    assert clock[0] <= module._ACCOUNT_S + 1
