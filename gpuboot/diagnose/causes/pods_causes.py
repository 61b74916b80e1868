"""Why pods do not run, or are not even wanted, although they have a node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Container, Pod
from gpuboot.cluster.workloads import Workload
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts
from gpuboot.diagnose.log_lines import last_words

_LOOP = "CrashLoopBackOff"
_IN_USE = "address already in use"
_PORT = re.compile(r":(\d+): bind: address already in use")
_PORTS = "free ports"
# names of what NVIDIA's charts make, whoever's release it is
_OPERANDS = ("nvidia-", "gpu-feature-discovery", "dcgm-exporter")
_NEEDED = ("device-plugin", "dcgm-exporter", "gpu-feature-discovery", "operator-validator")
_NODE_EXPORTER = 9100
_MESSAGE = 120
_METRICS = ("prometheus-target-down", "prometheus-down")


def failing(facts: Facts, pod: Pod) -> Container | None:
    """The container of a pod that ends again and again: it waits, or has just ended."""
    for container in pod.containers:
        ended_recently = facts.cluster.ended_lately(container)
        if container.reason == _LOOP or (
            container.restarts > 1 and ended_recently and not container.ready
        ):
            return container
    return None


def how_it_ended(container: Container) -> str:
    """How often a container was started, and how it ended last."""
    if container.termination is None:
        return f"container {container.name}: {container.reason}"
    outcome = f"exit code {container.termination.code}" + (
        f" ({container.termination.reason})" if container.termination.reason else ""
    )
    # of one that did not even start, runc and its hooks say why, at the end
    reason = " ".join(container.termination.message.split())[-_MESSAGE:]
    text = f"container {container.name}: started {container.restarts + 1} times, ended with "
    return f"{text}{outcome}: {reason}" if reason else f"{text}{outcome}"


def crash_loop(facts: Facts) -> Iterator[Sighting]:
    for pod in facts.cluster.pods:
        if not pod.going and not _is_operator(pod) and (container := failing(facts, pod)):
            lines = [line for line in facts.cluster.log(pod, "") if line.strip()]
            last = last_words(lines) or lines
            yield Sighting(
                node=pod.node,
                pod=pod.key,
                evidence=(how_it_ended(container), *last[-2:]),
                confidence=Confidence.POSSIBLE,
                values={"container": container.name},
            )


def limit_range_default(facts: Facts) -> Iterator[Sighting]:
    """Containers that were killed at a memory limit that only a LimitRange gave them."""
    for pod in facts.cluster.pods:
        for container in pod.containers:
            limit = pod.default_memory.get(container.name)
            termination = container.termination
            ended_lately = facts.cluster.ended_lately(container)
            if pod.going or not limit or not termination or not ended_lately:
                continue
            if termination.reason != "OOMKilled":
                continue
            ranges = [
                item.name
                for item in facts.cluster.limit_ranges
                if (item.namespace, item.memory) == (pod.namespace, limit)
            ]
            name = ranges[0] if ranges else ""
            source = (
                f"LimitRange {pod.namespace}/{name}" if name else "a LimitRange that is gone since"
            )
            yield Sighting(
                node=pod.node,
                pod=pod.key,
                evidence=(
                    how_it_ended(container),
                    f"its memory limit of {limit} is the default of {source}",
                ),
                # with another limit it may have been killed as well, and it may be well since
                confidence=Confidence.LIKELY if container.ready else Confidence.CERTAIN,
            )


def _is_operator(pod: Pod) -> bool:
    is_named = pod.name.startswith("gpu-operator-") and "node-feature" not in pod.name
    return pod.labels.get("app") == "gpu-operator" or is_named


def operator_crash_loop(facts: Facts) -> Iterator[Sighting]:
    for pod in facts.cluster.pods:
        if pod.going or not _is_operator(pod):
            continue
        if container := failing(facts, pod):
            evidence = (how_it_ended(container), *last_words(facts.cluster.log(pod, "")))
            yield Sighting(node=pod.node, pod=pod.key, evidence=evidence)


def port_conflict(facts: Facts) -> Iterator[Sighting]:
    for pod in facts.cluster.pods:
        lines = [line for line in facts.cluster.log(pod, _IN_USE) if _PORT.search(line)]
        waits = _PORTS in pod.waits and "node-exporter" in pod.name
        if pod.going or pod.ready or not (lines or waits):
            continue
        evidence = [lines[-1] if lines else pod.waits]
        match = _PORT.search(evidence[0])
        port = int(match[1]) if match else _NODE_EXPORTER
        for host in facts.read:
            owner = host.state.ports.get(port) if host.state else None
            if owner and host.node == (pod.node or host.node):
                evidence.append(f"{host.node}: port {port} is held by {owner}")
        # once nobody holds it, the next start of the container gets it
        is_held = len(evidence) > 1 or facts.cluster.present(max(_ends(pod), default=0.0))
        yield Sighting(
            node=pod.node,
            pod=pod.key,
            evidence=tuple(evidence[:4]),
            confidence=Confidence.CERTAIN if is_held else Confidence.LIKELY,
            values={"port": str(port)},
        )


def _ends(pod: Pod) -> list[float]:
    return [container.termination.at for container in pod.containers if container.termination]


def tolerated(taint: str, tolerations: tuple[Mapping[str, Any], ...]) -> bool:
    """Whether one of these tolerations bears a taint (`key=value:effect`)."""
    pair, _, effect = taint.rpartition(":")
    key, _, value = pair.partition("=")
    return any(
        (not item.get("key") or item["key"] == key)
        and (item.get("operator") == "Exists" or item.get("value", "") == value)
        and (not item.get("effect") or item["effect"] == effect)
        for item in tolerations
    )


def _keeping_away(node: Node, workload: Workload) -> list[str]:
    """The node's taints that keep a DaemonSet's pods away; Kubernetes' own it tolerates anyway."""
    return [
        taint
        for taint in node.taints
        if not taint.startswith("node.kubernetes.io/")
        and not taint.endswith(":PreferNoSchedule")
        and not tolerated(taint, workload.tolerates)
    ]


def operand_desired_zero(facts: Facts) -> Iterator[Sighting]:
    """Nodes that an operand is meant for, and that a taint keeps it away from."""
    lines_by_node: dict[str, list[str]] = {}
    for workload in facts.cluster.workloads:
        if workload.kind != "DaemonSet" or not workload.name.startswith(_OPERANDS):
            continue
        selected = [node for node in facts.cluster.nodes if _selected(node, workload)]
        for node in selected:
            if taints := _keeping_away(node, workload):
                lines_by_node.setdefault(node.name, []).append(
                    f"DaemonSet {workload.key}: DESIRED {workload.desired} of {len(selected)} "
                    f"nodes that it selects; {', '.join(taints)} is not tolerated"
                )
    for name, lines in lines_by_node.items():
        yield Sighting(node=name, evidence=tuple(lines[:4]))


def _selected(node: Node, workload: Workload) -> bool:
    return bool(workload.selector) and all(
        node.labels.get(key) == value for key, value in workload.selector.items()
    )


def operand_unlabelled(facts: Facts) -> Iterator[Sighting]:
    """Nodes with GPUs that an operand's selector does not find."""
    needed = [
        workload
        for workload in facts.cluster.workloads
        if workload.kind == "DaemonSet"
        and any(name in workload.name for name in _NEEDED)
        and workload.name.startswith(_OPERANDS)
        and workload.selector
    ]
    for host in facts.read:
        node = facts.cluster.node(host.node)
        if node is None or not host.gpus or not (host.state and host.state.driver_loaded):
            continue
        evidence = [
            f"DaemonSet {workload.key} (DESIRED {workload.desired}) wants "
            f"{_words(workload.selector)}; the node has {_labels(node, workload)}"
            for workload in needed
            if not _selected(node, workload)
        ]
        if evidence:
            yield Sighting(node=host.node, evidence=tuple(evidence[:3]))


def _labels(node: Node, workload: Workload) -> str:
    """What a node has in place of the labels that a workload selects."""
    return ", ".join(
        f"{key}={node.labels[key]}" if key in node.labels else f"no {key}"
        for key, value in workload.selector.items()
        if node.labels.get(key) != value
    )


def _words(selector: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in selector.items())


TABLE = (
    Cause(
        id="operator-crash-loop",
        meaning="the GPU Operator ends again and again, so nothing of it is kept up",
        find=operator_crash_loop,
        remedy="read why it ended; often it cannot reach the API server or has no rights there",
        command="kubectl -n {namespace} logs {name} --previous --tail=30",
    ),
    Cause(
        id="pod-crash-loop",
        meaning="a container ends again and again, and no cause is known",
        find=crash_loop,
        remedy="read why it ended",
        command="kubectl -n {namespace} logs {name} -c {container} --previous --tail=30",
        fallback=True,
        explains=("prometheus-target-down", "api-extension-unavailable"),
    ),
    Cause(
        id="limit-range-default",
        meaning="a container is killed for want of memory, at a limit that a LimitRange gave it "
        "since it asks for none",
        find=limit_range_default,
        remedy="raise or remove the default of the LimitRange, or give the container a limit of "
        "its own; then delete the pod, since a running one keeps its limit",
        command="kubectl -n {namespace} describe limitrange",
        explains=("pod-crash-loop", "operator-crash-loop", "exporter-oom", *_METRICS),
    ),
    Cause(
        id="port-conflict",
        meaning="a pod's port on the host is taken, for example by another node exporter",
        find=port_conflict,
        remedy="end the other program, or give the pod another port",
        command="sudo ss -ltnp 'sport = :{port}'",
        on="node",
        explains=("prometheus-target-down", "pending-port", "pod-crash-loop"),
    ),
    Cause(
        id="operand-desired-zero",
        meaning="the GPU Operator's pods are not wanted on a node: they do not tolerate its taint",
        find=operand_desired_zero,
        remedy="remove the taint, or add it to `daemonsets.tolerations` of the operator",
        command="kubectl get node {node} -o jsonpath='{{.spec.taints}}'; kubectl get daemonsets -A",
        explains=("device-plugin-missing", "pending-resource", "service-monitor-missing"),
    ),
    Cause(
        id="operand-unlabelled",
        meaning="the GPU Operator's pods are not wanted on a GPU node: they select other labels",
        find=operand_unlabelled,
        remedy="where labels of nvidia.com are missing, look at node feature discovery, which "
        "labels nodes with GPUs; `false` was set by a person, `paused-for-` is left of a change of "
        "MIG or driver that did not end: set it to true; a label that is not NVIDIA's: somebody "
        "edited the selector, which a run of deploys/site.py puts back",
        command="kubectl get node {node} --show-labels; "
        "kubectl get pods -A -o wide -l app.kubernetes.io/name=node-feature-discovery",
        explains=("device-plugin-missing", "pending-resource"),
    ),
)
