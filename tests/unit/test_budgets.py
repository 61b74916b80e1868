"""Which pods a PodDisruptionBudget counts, and why it lets none of them go."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.cluster import budgets
from gpuboot.cluster.budgets import Budget
from gpuboot.cluster.pods import parse_pod
from tests.cluster_answers import make_object

Json = dict[str, Any]
BUDGET = Budget("ml", "serve", 1, 2)
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


def pod(name: str, status: Json, node: str = "gpu1", **meta: Any) -> Json:
    created = make_object(name, "ml", spec={"nodeName": node} if node else {}, status=status)
    created["metadata"] |= meta
    return created


@pytest.mark.parametrize(
    ("selector", "selector_text"),
    [
        ({"matchLabels": {"app": "web", "tier": "x"}}, "app=web,tier=x"),
        ({"matchExpressions": [
            {"key": "a", "operator": "In", "values": ["1", "2"]},
            {"key": "b", "operator": "NotIn", "values": ["3"]},
            {"key": "c", "operator": "Exists"},
            {"key": "d", "operator": "DoesNotExist"},
        ]}, "a in (1,2),b notin (3),c,!d"),
        ({}, ""),
        (None, ""),
    ],
)  # fmt: skip
def test_its_pods_as_kubectl_selects_them(selector: Json | None, selector_text: str) -> None:
    status = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2}
    budget = budgets.exhausted(make_object("b", "ml", spec={"selector": selector}, status=status))
    assert budget == Budget("ml", "b", 1, 2, selector_text)


def test_one_that_lets_a_pod_go_keeps_none() -> None:
    status = {"disruptionsAllowed": 1}
    assert budgets.exhausted(make_object("b", "ml", spec={"selector": {}}, status=status)) is None


def test_why_it_lets_none_go() -> None:
    no_node = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes: taint"}],
    }
    image = {"phase": "Pending", "containerStatuses": [
        {"name": "m", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}  # fmt: skip
    items = [
        pod("ok", READY),
        pod("a", no_node, node=""),
        pod("b", image),
        pod("c", READY, deletionTimestamp="2026-01-01T00:00:00Z"),
        pod("d", UNREADY),
    ]
    pods = [parse_pod(item) for item in items]
    begin = "not Ready of the pods that serve counts: "
    assert budgets.describe_budget(BUDGET, pods) == (
        f"{begin}a (on no node): 0/3 nodes: taint; b (on gpu1): ImagePullBackOff in m; "
        "c (on gpu1): is ending and 1 more"
    )
    assert budgets.describe_budget(BUDGET, pods[-1:]) == f"{begin}d (on gpu1): Running"
    assert budgets.describe_budget(BUDGET, pods[:1]) == (
        "all pods that serve counts are Ready (1), and it needs each"
    )
