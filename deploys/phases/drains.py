"""A rehearsal of all drains that a run is going to make, before anything changes."""

from collections.abc import Mapping
from typing import Any

from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host

from deploys.engine import answers, compare, planned_drains
from deploys.engine.spans import span
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.cluster.pods_fact import PodsOfNodes
from deploys.parts.helm.fact import HelmRelease
from deploys.run import context
from gpuboot.cluster import drain_rehearsal as rules
from gpuboot.cluster.drain import NodePods
from gpuboot.config.problems import Problem
from gpuboot.monitoring.charts.gpu_operator_values import operator_values

_AT_ONCE = 50  # nodes


def rehearse(run: context.Run) -> tuple[list[Problem], list[str]]:
    """Problems and warnings about pods that keep their nodes from being drained."""
    comparison = compare.current()
    by_node = comparison.drains() if comparison else {}
    drains = {node.name: by_node[node.name] for node in run.nodes if node.name in by_node}
    if not drains:
        return [], []
    with span("rehearse drains"):
        pods = _pods(run, list(drains))
    planned_drains.held_up.update(rules.busy(drains, pods))
    shares = [node for node, plan in drains.items() if plan.shares]
    if shares and _operator_may_go_first(run):
        planned_drains.sharing.update(shares)
    return rules.problems(drains, pods), rules.warnings(drains, pods)


def _operator_may_go_first(run: context.Run) -> bool:
    """Whether the GPU Operator can be as the settings say before nodes are upgraded.

    Not where it, or its exporter, needs what a later phase makes or takes away, or where the leader
    takes no part.
    """
    if _leader(run) not in list(run.inventory.get_active_hosts()):
        return False
    namespace = run.settings.gpu_operator.namespace
    values = operator_values(run.settings, run.lock)
    try:
        [live] = answers.read_each(
            HelmRelease,
            {
                _leader(run): {
                    "release": "gpu-operator",
                    "namespace": namespace,
                    "kubeconfig": ADMIN_CONF,
                }
            },
        )
    except PyinfraError:
        return False
    return live.status == "deployed" and _switches(live.config) == _switches(values)


def _switches(values: Mapping[str, Any]) -> tuple[Any, Any]:
    """Whether the operator's exporter is enabled, and whether its ServiceMonitor is.

    These need what other phases make; another scrape interval, for example, does not.
    """
    exporter = values.get("dcgmExporter") or {}
    return exporter.get("enabled"), (exporter.get("serviceMonitor") or {}).get("enabled")


def _leader(run: context.Run) -> Host:
    return run.inventory.get_host(context.cluster_leader(run.nodes).host)


def _pods(run: context.Run, nodes: list[str]) -> dict[str, NodePods]:
    leader = _leader(run)
    pods_by_node: dict[str, NodePods] = {}
    for first in range(0, len(nodes), _AT_ONCE):
        some = nodes[first : first + _AT_ONCE]
        try:
            [part] = answers.read_each(
                PodsOfNodes, {leader: {"kubeconfig": ADMIN_CONF, "nodes": some}}
            )
        except PyinfraError as error:
            part = dict.fromkeys(some, NodePods(error=str(error)))
        pods_by_node |= part or dict.fromkeys(some, NodePods(error="no answer"))
    return pods_by_node
