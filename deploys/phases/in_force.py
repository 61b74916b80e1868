"""What is in force on members of the cluster, compared with what the settings ask for."""

from typing import Any

from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.in_force import operations as in_force
from deploys.run.context import Context
from gpuboot.cluster import kubelet_in_force, static_pods, terminating
from gpuboot.cluster.kubeadm import Configuration
from gpuboot.cluster.settings_in_force import SILENCES
from gpuboot.config.inventory import Node
from gpuboot.hosts import boot_overrides
from gpuboot.monitoring import components
from gpuboot.preflight.kubelet_problems import lines
from gpuboot.verify.collector import ALERTMANAGER
from gpuboot.verify.silences import alert_rules


def compared(context: Context, config: Configuration, kubelet: str) -> None:
    """Name what others have set, on a host that was a member before this run.

    + config: of the cluster; kubelet: digest of this host's part of it
    """
    node, settings = context.node, context.settings
    if not is_member(context, node):
        return
    question = _question(context)
    foreign_pods = map(static_pods.foreign_pod, context.state.boot.static_pods)
    in_force.boot_compared(
        name="Compare what the next boot sets",
        decisions=[*boot_overrides.decisions(context.state), *foreign_pods],
    )
    in_force.kubelet_compared(
        name="Compare what kubelets run with",
        node=node.name,
        leader=context.leader.host,
        question=question,
        expected=kubelet_in_force.expected(config.text),
        digests=[kubelet, config.kubelet],
        lines=lines(context.state),
    )
    if not node.leader:
        return
    in_force.rights_compared(name="Compare the rights of everybody", question=question)
    in_force.namespaces_compared(name=terminating.OPERATION, names=components.namespaces(settings))
    if settings.monitoring.enabled:
        in_force.silences_compared(
            name="Compare Alertmanager's silences",
            question=question,
            rules=alert_rules(settings, context.nodes),
            cluster=settings.cluster.name,
        )


def is_member(context: Context, node: Node) -> bool:
    """Whether a node was part of a cluster before this run."""
    state = context.states.get(node.host)
    return state is not None and "/etc/kubernetes/kubelet.conf" in state.kubeconfigs


def _question(context: Context) -> dict[str, Any]:
    monitoring = context.settings.monitoring
    service, port = ALERTMANAGER
    base = f"/api/v1/namespaces/{monitoring.namespace}/services/{service}:{port}/proxy"
    return {
        "kubeconfig": ADMIN_CONF,
        "nodes": [item.name for item in context.nodes if is_member(context, item)],
        "silences": f"{base}{SILENCES}" if monitoring.enabled else "",
    }
