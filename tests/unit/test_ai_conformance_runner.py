"""Evidence in a cluster that does not exist: looked for in steps, and nothing is left of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.settings import parse_settings
from gpuboot.conformance.ai import (
    component_steps,
    evidence_runner,
    evidence_steps,
    kueue,
    pod_scaling,
    service,
)
from gpuboot.conformance.ai.access import END
from gpuboot.conformance.ai.evidence_requirements import REQUIREMENTS
from gpuboot.conformance.ai.evidence_results import Outcome, Result
from gpuboot.conformance.ai.evidence_runner import PREFIX
from gpuboot.conformance.ai.evidence_site import Site, Stopped
from gpuboot.conformance.ai.service import LABELS
from gpuboot.usage.autoscaling import METRIC
from gpuboot.verify.session import Namespace, Session
from tests.unit.evidence import SIZES, uuid
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import clock

__all__ = ["clock"]
SETTINGS = parse_settings({})
KUEUE = {"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2"}}
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"


def _is_typed(path: str, body: dict[str, Any]) -> bool:
    """Whether an object names the version of its path and a kind, as custom resources have to."""
    return path.startswith(f"/apis/{body.get('apiVersion')}/") and bool(body.get("kind"))


@dataclass
class AiCluster(FakeCluster):
    """+ answers: path -> answer, of what no verification asks
    + sent: method and path of all that is not about pods, namespaces and leases
    + peeking: a container beside one with a GPU sees that GPU
    + moving: utilization is that of the load; counting: Prometheus finds new services
    """

    answers: dict[str, Any] = field(default_factory=dict)
    sent: list[tuple[str, str]] = field(default_factory=list)
    webhook: str = 'admission webhook "vclusterqueue.kb.io" denied the request'
    peeking: bool = False
    moving: bool = True
    counting: bool = True
    requests: int = 0

    def send(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        if path.startswith(("/api/v1/namespaces", "/apis/coordination")):
            return super().send(method, path, body, missing_ok)
        self.sent.append((method, path))
        if method == "POST" and path.startswith(kueue.GROUP) and not _is_typed(path, body):
            raise ClusterError("400 the object provided is unrecognized: Kind is missing", 400)
        if method == "POST" and body["metadata"]["name"].endswith("-bad") and self.webhook:
            raise ClusterError(self.webhook, 403)
        return {}

    def _create_pod(self, body: dict[str, Any]) -> dict[str, Any]:
        if "nodeSelector" in body["spec"]:
            return super()._create_pod(body)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        pod = {"metadata": body["metadata"], "spec": body["spec"], "status": ready}
        self.pods[body["metadata"]["name"]] = pod
        return pod

    def _status(self, pod: dict[str, Any], node: str) -> dict[str, Any]:
        return {**super()._status(pod, node), "conditions": [{"type": "Ready", "status": "True"}]}

    def _answer(self, path: str, query: dict[str, str]) -> Any:
        if path in self.answers:
            return self.answers[path]
        if path.endswith(service.INFER):
            self.requests += 1
            return "service"
        if path.endswith("/api/v1/query"):
            return {"status": "success", "data": {"result": self._series(query["query"])}}
        if path == "/version":
            return {"gitVersion": "v1.36.3"}
        if path.startswith("/apis/") and not path.startswith("/apis/coordination"):
            raise ClusterError("the server could not find the requested resource", 404)
        return super()._answer(path.replace(PREFIX, "gpuboot-verify-"), query)

    def _series(self, query: str) -> list[dict[str, Any]]:
        if query.startswith(service.METRIC):
            value = [1000.0, str(self.requests)]
            return [{"metric": {"pod": "service"}, "value": value}] if self.counting else []
        busy = {gpu for gpu in self.placed if self.moving}
        values = {
            ("DCGM_FI_DEV_GPU_UTIL", gpu): "98" if gpu in busy else "0"
            for gpu in [("gpu1", 0), ("gpu1", 1)]
        } | {("DCGM_FI_DEV_FB_USED", gpu): "4" for gpu in [("gpu1", 0), ("gpu1", 1)]}
        return [
            {"metric": {"__name__": name, "UUID": uuid(*gpu)}, "value": [1000.0, value]}
            for (name, gpu), value in values.items()
        ]

    @property
    def _newest(self) -> str:
        return super()._newest.replace(PREFIX, "gpuboot-verify-")

    def _log(self, name: str, container: str) -> str:
        if name.startswith("load-"):
            return f"{uuid(*self._held_devices(name, container)[0])}: program gpuboot"
        if not name.startswith("access-"):
            return ""
        devices = [uuid(*gpu) for gpu in self._held_devices(name, container)]
        if container == "bystander" and self.peeking:
            devices = [uuid("gpu1", 0)]
        lines = [f"GPU 0: NVIDIA H100 (UUID: {device})" for device in devices]
        return "\n".join([*lines, "driver 580.95.05", END])


def run(
    cluster: AiCluster, stopped: Callable[[], bool] = lambda: False
) -> tuple[Outcome, list[str]]:
    messages: list[str] = []
    outcome = evidence_runner.run(
        cast(Cluster, cluster), tuple(SIZES), SETTINGS, "busybox", messages.append, stopped
    )
    assert set(cluster.namespaces.values()) <= {"Terminating"}
    assert cluster.pods == {}
    return outcome, messages


def only(monkeypatch: pytest.MonkeyPatch, *step_list: Any) -> None:
    """Leave the runner with these steps."""
    monkeypatch.setattr(evidence_runner, "_STEPS", step_list)


def test_a_step_that_ends_in_an_error_says_nothing_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(site: Site) -> list[Result]:
        raise ClusterError("no answer within 20 s")

    def sound(site: Site) -> list[Result]:
        return [Result("dra_support", "pass", "all")]

    only(
        monkeypatch,
        evidence_runner._Step(broken, ("ai_inference",)),
        evidence_runner._Step(sound, ("dra_support",)),
    )
    outcome, messages = run(AiCluster())
    statuses = {item.id: item.status for item in outcome.results}
    assert list(statuses) == list(REQUIREMENTS)
    assert {name for name, status in statuses.items() if status != "not_run"} == {"dra_support"}
    assert "ai_inference: not_run: ClusterError: no answer within 20 s" in messages
    assert outcome.kubernetes == "v1.36.3"


def test_whoever_ends_it_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(site: Site) -> list[Result]:
        raise Stopped

    only(monkeypatch, evidence_runner._Step(interrupted, ()))
    cluster = AiCluster(answers={kueue.GROUP: KUEUE})
    outcome, _ = run(cluster)
    assert outcome.stopped
    assert outcome.results == ()
    removals = [path.partition("?")[0] for method, path in cluster.sent if method == "DELETE"]
    assert removals[-2:] == [QUEUES, QUEUES.replace("clusterqueues", "resourceflavors")]
    assert run(AiCluster(), stopped=lambda: True)[0].stopped


def test_what_a_killed_command_has_left_is_removed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch)
    cluster = AiCluster(namespaces={f"{PREFIX}0a1b2c": "Active"}, answers={kueue.GROUP: KUEUE})
    _, messages = run(cluster)
    assert f"{PREFIX}0a1b2c" in messages[0]
    assert cluster.sent[0][0] == "DELETE"  # of the cluster's own objects, before anything is made


def site(cluster: AiCluster) -> Site:
    fake = cast(Cluster, cluster)
    session = Session(fake, lambda _: None, 60, Namespace(PREFIX, LABELS))
    session.create([service.pod("busybox")])
    return Site(fake, session, SETTINGS, tuple(SIZES), "busybox", lambda _: None, lambda: False)


@pytest.mark.parametrize("peeking", [False, True])
def test_pods_see_the_gpu_that_they_were_given(peeking: bool) -> None:
    cluster = AiCluster(peeking=peeking)
    cluster.labels["nvidia.com/cuda.driver-version.full"] = "580.95.05"
    access, driver, sharing = evidence_steps.gpu_access(site(cluster))
    assert access.status == ("fail" if peeking else "pass")
    assert [line for line in access.observations if "given one" in line][:1] == [
        "gpu1: access-gpu1-0/holder, given one nvidia.com/gpu, sees "
        f"{uuid('gpu1', 0)}, driver 580.95.05"
    ]
    assert (driver.status, sharing.status) == ("pass", "not_run")
    assert not any(name.startswith("access-") for name in cluster.pods)


def test_a_site_without_the_components_is_told_how_to_get_them() -> None:
    cluster_site = site(AiCluster())
    results = [
        *component_steps.gang_and_controller(cluster_site),
        *component_steps.inference(cluster_site),
        *component_steps.scaling(cluster_site),
    ]
    assert {item.status for item in results} == {"not_run"}
    assert [item.id for item in results if "helm install kueue" in item.remedy] == [
        "gang_scheduling",
        "robust_controller",
    ]
    assert all(item.remedy for item in results)


@pytest.mark.parametrize(("active", "status"), [("True", "pass"), ("False", "fail")])
def test_kueue_is_tried_with_good_queues_and_bad_ones(active: str, status: str) -> None:
    cluster = AiCluster(answers={kueue.GROUP: KUEUE})
    conditions = [{"type": "Active", "status": active}]
    cluster_site = site(cluster)
    queue = f"{QUEUES}/{cluster_site.session.namespace}"
    cluster.answers[queue] = {"status": {"conditions": conditions}}
    jobs = f"/apis/batch/v1/{cluster_site.namespace}/jobs/{kueue.FITS}"
    cluster.answers[jobs] = {"status": {"succeeded": 2}}
    controller, gang = component_steps.gang_and_controller(cluster_site)
    assert (controller.status, gang.status) == (status, "pass")


def test_gpu_load_is_looked_for_when_a_pod_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The adapter serves a metric from the first pod on that has it, and before it none."""
    cluster = AiCluster(answers={pod_scaling.API: {"resources": []}})
    cluster_site = site(cluster)
    paths = [
        f"/apis/apps/v1/{cluster_site.namespace}/deployments",
        f"/apis/autoscaling/v2/{cluster_site.namespace}/horizontalpodautoscalers",
    ]
    served = {"resources": [{"name": f"pods/{METRIC}"}]}
    waits: list[float] = []
    pause = cluster_site.session.wait

    def wait(seconds: float) -> None:
        assert [path for _, path in cluster.sent] == paths[: len(waits) + 1]
        waits.append(seconds)
        cluster.answers[pod_scaling.API] = served
        pause(seconds)

    monkeypatch.setattr(cluster_site.session, "wait", wait)
    monkeypatch.setattr(component_steps, "_SCALE_S", 0)
    [result] = component_steps.scaling(cluster_site)
    assert [path for _, path in cluster.sent] == paths
    assert result.status == "fail"  # no controller is there that makes pods


@pytest.mark.parametrize(("moving", "status"), [(True, "pass"), (False, "fail")])
def test_a_gpu_is_loaded_and_given_back(moving: bool, status: str) -> None:
    cluster = AiCluster(moving=moving)
    [result] = evidence_steps.metrics_under_load(site(cluster))
    assert (result.id, result.status) == ("accelerator_metrics", status)
    assert not cluster.placed


def test_gpus_that_others_hold_are_not_loaded() -> None:
    holders = {(name, index): "team/job" for name, count in SIZES.items() for index in range(count)}
    [result] = evidence_steps.metrics_under_load(site(AiCluster(gpu_holders=holders)))
    assert (result.status, "held by team/job" in result.summary) == ("not_run", True)


@pytest.mark.parametrize(("counting", "status"), [(True, "pass"), (False, "fail")])
def test_a_service_is_asked_and_prometheus_counts(counting: bool, status: str) -> None:
    cluster = AiCluster(counting=counting)
    [result] = evidence_steps.service_metrics(site(cluster))
    assert (result.status, cluster.requests) == (status, service.REQUESTS)
    [(_, path)] = cluster.sent
    assert path.endswith("/podmonitors")


def test_without_monitoring_nothing_is_said_of_metrics() -> None:
    plain = replace(site(AiCluster()), settings=parse_settings({"monitoring": {"enabled": False}}))
    results = [*evidence_steps.metrics_under_load(plain), *evidence_steps.service_metrics(plain)]
    assert {item.status for item in results} == {"not_run"}


def test_the_server_is_asked_for_its_apis_and_deployments() -> None:
    deployment = {"metadata": {"namespace": "kube-system", "name": "coredns"}}
    cluster = AiCluster(answers={"/apis/apps/v1/deployments": {"items": [deployment]}})
    dra, scaling = evidence_steps.what_is_served(site(cluster))
    assert (dra.status, scaling.status) == ("fail", "not_applicable")
