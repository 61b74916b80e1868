"""The link `nodes`: every node of the cluster can take pods, those without GPUs as well.

`allocatable` looks at GPU nodes alone. Here a control plane counts that is silent, and a node whose
kubelet is about to end pods for want of memory, disk or process numbers.
Source: kubernetes.io, Node Status, Conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuboot.cluster.objects import Condition, parse_conditions
from gpuboot.verify.checks.one_file import CheckVerdict, ClusterCheck, Link

# condition -> what it is when it is true
_PRESSURE = {
    "MemoryPressure": "is short of memory: its kubelet ends pods",
    "DiskPressure": "is short of disk: its kubelet ends pods and removes images",
    "PIDPressure": "is short of process numbers: its kubelet ends pods",
    "NetworkUnavailable": "has no pod network",
}
_REMEDY = "see `kubectl describe node {}`: conditions and events tell why"


def _evaluate(answer: Any) -> Iterable[CheckVerdict]:
    nodes = {
        item["metadata"]["name"]: _problems(parse_conditions(item)) for item in answer["items"]
    }
    if not nodes:
        remedy = "see `kubectl describe nodes`, then run deploys/site.py"
        return [CheckVerdict(status="fail", detail="the cluster has no node", remedy=remedy)]
    problems_by_node = {name: texts for name, texts in nodes.items() if texts}
    if not problems_by_node:
        detail = f"{len(nodes)} Ready; none is short of memory, disk or process numbers"
        return [CheckVerdict(status="pass", detail=detail)]
    return [
        CheckVerdict(status="fail", detail="; ".join(texts), remedy=_REMEDY.format(name), node=name)
        for name, texts in problems_by_node.items()
    ]


def _problems(conditions: Mapping[str, Condition]) -> list[str]:
    ready = conditions["Ready"]
    problems = [] if ready.status == "True" else [f"is not Ready: {_condition_reason(ready)}"]
    return problems + [
        f"{text}: {_condition_reason(conditions[name])}"
        for name, text in _PRESSURE.items()
        if name in conditions and conditions[name].status == "True"
    ]


def _condition_reason(condition: Condition) -> str:
    return condition.message or condition.reason or "no reason is told"


CHECK = ClusterCheck(
    link=Link(
        name="nodes",
        passes="every node is Ready, short of nothing and measured",
        facts="conditions of the Node objects, control planes' as well; Prometheus' targets",
        fails="a node is not Ready, or short of memory, disk, process numbers or its network; "
        "Prometheus has no target node-exporter of it",
        remedy="see `kubectl describe node",
        subject="cluster",
        docker=False,
    ),
    behind="load",
    path="/api/v1/nodes",
    evaluate=_evaluate,
)
