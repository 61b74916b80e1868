"""vectorAdd on all GPUs and MIG devices that are free: pods of our own, gone afterwards."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpuboot.config.settings import Settings
from gpuboot.verify import kube_objects
from gpuboot.verify.devices import WHOLE
from gpuboot.verify.evidence import GpuPod, KubeNode, Trial
from gpuboot.verify.heartbeat import SILENT_S, Heartbeats
from gpuboot.verify.session import LABELS, Session, pod_name

TOLERATED = ("nvidia.com/gpu", "node-role.kubernetes.io/control-plane")
Say = Callable[[str], None]
# Listing UUIDs first names the GPU even when the computation fails on it.
_SCRIPT = "nvidia-smi -L && /cuda-samples/vectorAdd && exec sleep {hold}"
_SPARE_S = 120  # a pod that nobody deletes ends itself this long after the time-out
_POLL_S = 1.0
_TELL_EVERY_S = 10.0
_LISTEN_EVERY_S = 5.0
_UNSCHEDULED_S = 15.0  # free GPUs are counted before asking, so a pod that waits longer lost a race


@dataclass(frozen=True)
class Plan:
    """How many pods ask for which resource of which node, and why none goes to the others."""

    pods: Mapping[str, Mapping[str, int]]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(sum(wanted.values()) for wanted in self.pods.values())


def plan(
    names: Iterable[str],
    nodes: Mapping[str, KubeNode],
    holders: tuple[GpuPod, ...],
    taints: Mapping[str, str],
) -> Plan:
    """One pod for every GPU and every MIG device that is free.

    + names: GPU nodes of the inventory
    + holders: pods that hold GPUs now
    + taints: node -> a taint that keeps our pods away, or ""
    """
    pods: dict[str, Mapping[str, int]] = {}
    skipped: dict[str, str] = {}
    for name in names:
        node = nodes.get(name)
        if node is None or not node.ready:
            skipped[name] = "the node is not Ready"
        elif node.silent:
            skipped[name] = node.silent
        elif node.cordoned:
            skipped[name] = "the node is cordoned"
        elif taints.get(name):
            skipped[name] = f"the node has the taint {taints[name]}"
        else:
            pods[name] = _free(node, [pod for pod in holders if pod.node == name])
    return Plan(pods, skipped)


def _free(node: KubeNode, holders: Iterable[GpuPod]) -> dict[str, int]:
    """What of a node's GPUs and MIG devices nobody holds, by resource."""
    held = Counter[str]()
    for pod in holders:
        held.update({WHOLE: pod.gpus, **pod.mig})
    offered = {WHOLE: node.gpus, **node.mig}
    return {name: count - held[name] for name, count in offered.items() if count > held[name]}


def manifest(
    name: str, node: KubeNode, settings: Settings, resource: str = WHOLE
) -> dict[str, Any]:
    """The pod: one GPU or MIG device of one node, no privileges, and an end of its own."""
    hold = settings.verify.timeout_s + _SPARE_S
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
            {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in TOLERATED
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
    """The pods of one verification.

    + session: where they are made
    + say: takes lines of progress
    + beats: tells of nodes whose kubelets stop meanwhile

    `given_up` has those nodes after `wait`, and what is known of each.
    """

    def __init__(self, session: Session, settings: Settings, say: Say, beats: Heartbeats) -> None:
        self._session = session
        self._settings = settings
        self._say = say
        self._beats = beats
        self._listened_at = -math.inf
        self.given_up: dict[str, str] = {}

    def start(self, chosen: Plan, nodes: Mapping[str, KubeNode]) -> list[Trial]:
        """Create all pods at once. Raises `ClusterError`."""
        trials = []
        for node, wanted in chosen.pods.items():
            each = [name for name, count in wanted.items() for _ in range(count)]
            for number, resource in enumerate(each):
                name = pod_name("vectoradd", node, number)
                self._session.create(manifest(name, nodes[node], self._settings, resource))
                trials.append(Trial(name, self._session.namespace, node, resource=resource))
        return trials

    def wait(self, trials: list[Trial]) -> list[Trial]:
        """Until every pod has answered, failed, or time is up; with progress."""
        if not trials:
            return []
        started = time.monotonic()
        deadline = started + self._settings.verify.timeout_s
        done: dict[str, Trial] = {}
        told, told_at = -1, started
        while len(done) < len(trials):
            pods = {pod["metadata"]["name"]: pod for pod in self._session.pods()}
            spent = time.monotonic() - started
            last = time.monotonic() > deadline
            for trial in trials:
                if trial.pod not in done:
                    self._listen(trial.node)
                    answer = self._look(trial, pods.get(trial.pod), spent, last)
                    if answer is not None:
                        done[trial.pod] = answer
            passed = sum(trial.passed for trial in done.values())
            if passed != told or time.monotonic() - told_at >= _TELL_EVERY_S:
                why = _waits_for(pods, done)
                self._say(f"vectorAdd: {passed} of {len(trials)} pods passed, {spent:.0f} s{why}")
                told, told_at = passed, time.monotonic()
            if len(done) < len(trials):
                time.sleep(_POLL_S)
        return [done[trial.pod] for trial in trials]

    def _look(
        self, trial: Trial, pod: kube_objects.Json | None, spent: float, last: bool
    ) -> Trial | None:
        """The trial's answer; None while there is reason to wait."""
        if gone := self.given_up.get(trial.node):
            return replace(trial, trouble=gone, seconds=spent)
        if pod is None and self._session.lost():
            why = "another verification took over: this one was not heard of for too long"
            return replace(trial, trouble=why, unschedulable=True, seconds=spent)
        if pod is None:
            return replace(trial, trouble="somebody deleted the pod", seconds=spent)
        trouble, hopeless = kube_objects.pod_trouble(pod)
        if kube_objects.unschedulable(pod):
            if spent < _UNSCHEDULED_S and not last:
                return None
            why = trouble or "the scheduler has not looked at it"
            return replace(trial, trouble=why, unschedulable=True, seconds=spent)
        log = "" if trouble and not hopeless else self._session.log(trial.pod)
        uuids, passed = kube_objects.log_answer(log)
        if passed and not hopeless:
            return replace(trial, uuids=uuids, passed=True, seconds=spent)
        if not hopeless and not last:
            return None
        tail = " / ".join(log.strip().splitlines()[-3:])
        waited = f"no answer within {spent:.0f} s" if last and not hopeless else ""
        text = "; ".join(part for part in (trouble, waited, tail and f"log: {tail}") if part)
        return replace(trial, uuids=uuids, trouble=text, seconds=spent)

    def _listen(self, node: str) -> None:
        """Give up a node whose kubelet has stopped: no pod of it will answer.

        Before each look at a pod, since the log of one on such a node takes long not to come.
        """
        if time.monotonic() - self._listened_at >= _LISTEN_EVERY_S:
            self._beats.look()
            self._listened_at = time.monotonic()
        if self._beats.silence(node) > SILENT_S:
            self.given_up[node] = self._beats.describe(node)


def _waits_for(pods: Mapping[str, kube_objects.Json], done: Mapping[str, Trial]) -> str:
    """What the first pod that says why it waits says."""
    waiting = (kube_objects.pod_trouble(pod)[0] for name, pod in pods.items() if name not in done)
    why = next(filter(None, waiting), "")
    return f"; waiting: {why}" if why else ""
