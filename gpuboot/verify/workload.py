"""Runs vectorAdd in a pod on every free GPU and MIG device."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpuboot.config.settings import Settings
from gpuboot.verify import kube_objects
from gpuboot.verify.devices import GPU_RESOURCE
from gpuboot.verify.evidence import GpuPod, KubeNode, WorkloadResult
from gpuboot.verify.heartbeat import SILENT_S, Heartbeats
from gpuboot.verify.session import LABELS, Session, pod_name

TOLERATED_TAINTS = ("nvidia.com/gpu", "node-role.kubernetes.io/control-plane")
Progress = Callable[[str], None]
# Listing UUIDs first names the GPU even when the computation fails on it.
_SCRIPT = "nvidia-smi -L && /cuda-samples/vectorAdd && exec sleep {hold}"
_GRACE_S = 120  # a pod that nobody deletes ends itself this long after the time-out
_POLL_S = 1.0
_PROGRESS_EVERY_S = 10.0
_HEARTBEAT_EVERY_S = 5.0
_UNSCHEDULED_S = 15.0  # free GPUs are counted before asking, so a pod that waits longer lost a race


@dataclass(frozen=True)
class PodPlan:
    """The pods to start: node -> resource -> how many; and why other nodes get none."""

    pods: Mapping[str, Mapping[str, int]]
    skipped_nodes: Mapping[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(sum(resources.values()) for resources in self.pods.values())


def plan_pods(
    names: Iterable[str],
    nodes: Mapping[str, KubeNode],
    gpu_pods: tuple[GpuPod, ...],
    taints: Mapping[str, str],
) -> PodPlan:
    """One pod for every GPU and every MIG device that is free.

    + names: GPU nodes of the inventory
    + gpu_pods: pods that hold GPUs now
    + taints: node -> a taint that keeps our pods away, or ""
    """
    pods: dict[str, Mapping[str, int]] = {}
    skipped: dict[str, str] = {}
    for name in names:
        node = nodes.get(name)
        if node is None or not node.ready:
            skipped[name] = "the node is not Ready"
        elif node.kubelet_error:
            skipped[name] = node.kubelet_error
        elif node.cordoned:
            skipped[name] = "the node is cordoned"
        elif taints.get(name):
            skipped[name] = f"the node has the taint {taints[name]}"
        else:
            pods[name] = _free(node, [pod for pod in gpu_pods if pod.node == name])
    return PodPlan(pods, skipped)


def _free(node: KubeNode, gpu_pods: Iterable[GpuPod]) -> dict[str, int]:
    """How many of a node's GPUs and MIG devices no pod holds, by resource."""
    held = Counter[str]()
    for pod in gpu_pods:
        held.update({GPU_RESOURCE: pod.gpus, **pod.mig})
    offered = {GPU_RESOURCE: node.gpus, **node.mig}
    return {name: count - held[name] for name, count in offered.items() if count > held[name]}


def pod_manifest(
    name: str, node: KubeNode, settings: Settings, resource: str = GPU_RESOURCE
) -> dict[str, Any]:
    """A pod that holds one GPU or MIG device of one node, without privileges.

    It ends itself if nobody deletes it.
    """
    hold = settings.verify.timeout_s + _GRACE_S
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "activeDeadlineSeconds": hold,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": {
            "kubernetes.io/hostname": node.labels.get("kubernetes.io/hostname", node.name)
        },
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in TOLERATED_TAINTS
        ],
        "containers": [
            {
                "name": "vectoradd",
                "image": settings.verify.image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", _SCRIPT.format(hold=hold)],
                "resources": {"limits": {resource: "1"}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }
    if settings.runtime.mode == "runtimeclass":
        spec["runtimeClassName"] = "nvidia"
    metadata = {"name": name, "labels": dict(LABELS)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Workload:
    """The vectorAdd pods of one verification.

    + session: where they are made
    + progress: takes lines of progress
    + heartbeats: knows nodes whose kubelets stop meanwhile

    After `wait`, `lost_nodes` maps those nodes to what is known of each.
    """

    def __init__(
        self, session: Session, settings: Settings, progress: Progress, heartbeats: Heartbeats
    ) -> None:
        self._session = session
        self._settings = settings
        self._progress = progress
        self._heartbeats = heartbeats
        self._heartbeats_read_at = -math.inf
        self.lost_nodes: dict[str, str] = {}

    def start(self, chosen: PodPlan, nodes: Mapping[str, KubeNode]) -> list[WorkloadResult]:
        """Create all pods at once. Raises `ClusterError`."""
        results = []
        for node, resources in chosen.pods.items():
            each = [name for name, count in resources.items() for _ in range(count)]
            for number, resource in enumerate(each):
                name = pod_name("vectoradd", node, number)
                self._session.create(pod_manifest(name, nodes[node], self._settings, resource))
                results.append(
                    WorkloadResult(
                        pod=name, namespace=self._session.namespace, node=node, resource=resource
                    )
                )
        return results

    def wait(self, results: list[WorkloadResult]) -> list[WorkloadResult]:
        """Until every pod has answered, failed, or time is up; with progress."""
        if not results:
            return []
        started = time.monotonic()
        deadline = started + self._settings.verify.timeout_s
        done: dict[str, WorkloadResult] = {}
        last_reported, last_reported_at = -1, started
        while len(done) < len(results):
            pods = {pod["metadata"]["name"]: pod for pod in self._session.pods()}
            spent = time.monotonic() - started
            last = time.monotonic() > deadline
            for result in results:
                if result.pod not in done:
                    self._check_heartbeat(result.node)
                    answer = self._result(result, pods.get(result.pod), spent, last)
                    if answer is not None:
                        done[result.pod] = answer
            passed = sum(result.passed for result in done.values())
            if passed != last_reported or time.monotonic() - last_reported_at >= _PROGRESS_EVERY_S:
                why = _waiting_reason(pods, done)
                self._progress(
                    f"vectorAdd: {passed} of {len(results)} pods passed, {spent:.0f} s{why}"
                )
                last_reported, last_reported_at = passed, time.monotonic()
            if len(done) < len(results):
                time.sleep(_POLL_S)
        return [done[result.pod] for result in results]

    def _result(
        self, result: WorkloadResult, pod: kube_objects.Json | None, spent: float, last: bool
    ) -> WorkloadResult | None:
        """The pod's result; None while it can still come."""
        if gone := self.lost_nodes.get(result.node):
            return replace(result, error=gone, seconds=spent)
        if pod is None and self._session.lost():
            why = "another verification took over: this one was not heard of for too long"
            return replace(result, error=why, unschedulable=True, seconds=spent)
        if pod is None:
            return replace(result, error="somebody deleted the pod", seconds=spent)
        issue = kube_objects.pod_issue(pod)
        if kube_objects.unschedulable(pod):
            if spent < _UNSCHEDULED_S and not last:
                return None
            why = issue.error or "the scheduler has not considered it yet"
            return replace(result, error=why, unschedulable=True, seconds=spent)
        log = "" if issue.error and not issue.failed else self._session.log(result.pod)
        uuids, passed = kube_objects.parse_vectoradd_log(log)
        if passed and not issue.failed:
            return replace(result, uuids=uuids, passed=True, seconds=spent)
        if not issue.failed and not last:
            return None
        tail = " / ".join(log.strip().splitlines()[-3:])
        waited = f"no answer within {spent:.0f} s" if last and not issue.failed else ""
        text = "; ".join(part for part in (issue.error, waited, tail and f"log: {tail}") if part)
        return replace(result, uuids=uuids, error=text, seconds=spent)

    def _check_heartbeat(self, node: str) -> None:
        """Stop waiting for a node whose kubelet has stopped: no pod of it will answer.

        Called before each pod is read: asking such a node for a log blocks for long.
        """
        if time.monotonic() - self._heartbeats_read_at >= _HEARTBEAT_EVERY_S:
            self._heartbeats.refresh()
            self._heartbeats_read_at = time.monotonic()
        if self._heartbeats.silent_for(node) > SILENT_S:
            self.lost_nodes[node] = self._heartbeats.describe(node)


def _waiting_reason(
    pods: Mapping[str, kube_objects.Json], done: Mapping[str, WorkloadResult]
) -> str:
    """Why the first of the pods that wait has to."""
    waiting = (kube_objects.pod_issue(pod).error for name, pod in pods.items() if name not in done)
    why = next(filter(None, waiting), "")
    return f"; waiting: {why}" if why else ""
