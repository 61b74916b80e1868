"""Preflight of a cluster that lives: what the settings ask of it and it cannot become.

Compared before anything is written: half of a change is worse than none.
"""

from collections.abc import Iterator, Mapping, Sequence

from gpuboot.cluster import objects, version_skew
from gpuboot.cluster.cluster_state import ClusterState, immutable_changes
from gpuboot.cluster.kubeadm import configuration
from gpuboot.cluster.local_path import STORAGE_CLASS, missing_class
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.monitoring import alerting
from gpuboot.monitoring.charts import remote_write

SecretName = tuple[str, str]  # namespace and name of a Secret

_RESET = "pyinfra INVENTORY deploys/reset.py --data gpuboot_reset=CLUSTER"
_REMOVE = "pyinfra INVENTORY deploys/remove.py --data gpuboot_remove="


def evaluate(
    nodes: Sequence[Node], settings: Settings, lock: Lock, cluster: ClusterState
) -> list[Problem]:
    """A problem for each wish of the settings that this cluster cannot be changed to.

    + nodes: of the inventory, with their addresses
    + cluster: as its leader sees it now; it answers
    """
    return [
        *_immutable(nodes, settings, lock, cluster),
        *_flannel_backend(settings, cluster),
        *version_skew.problems(nodes, lock.kubernetes.version, cluster),
        *_names(nodes, cluster),
        *_storage_class(settings, cluster),
        *_taken_node_ports(settings, cluster),
    ]


def _immutable(
    nodes: Sequence[Node], settings: Settings, lock: Lock, cluster: ClusterState
) -> Iterator[Problem]:
    for cause in immutable_changes(
        cluster.immutable, configuration(settings, lock, nodes).immutable
    ):
        yield Problem(
            "",
            f"{cause}: a living cluster cannot change this",
            f"put the setting back, or reset the cluster ({_RESET}) and run again",
        )


def _flannel_backend(settings: Settings, cluster: ClusterState) -> Iterator[Problem]:
    """A problem where flannel's backend would change: "Once set, the backend should not be changed
    at runtime" (its Documentation/backends.md).
    """
    expected = settings.cluster.flannel_backend
    if cluster.flannel_backend not in ("", expected):
        yield Problem(
            "",
            f"cluster.flannel_backend is {cluster.flannel_backend}, the settings ask for "
            f"{expected}: flannel does not change it in a living cluster",
            f"put the setting back, or reset the cluster ({_RESET}) and run again",
        )


def _names(nodes: Sequence[Node], cluster: ClusterState) -> Iterator[Problem]:
    known_nodes = {item.name: item for item in cluster.nodes}
    for node in nodes:
        if member := _renamed(node, cluster.nodes):
            yield Problem(
                node.host,
                f"the cluster knows the machine at {node.address} as node {member}, and a node "
                f"cannot be renamed to {node.name}",
                f'set node_name = "{member}"; to have it as {node.name}, then remove it under that '
                f"name ({_REMOVE}{member}), give it the new node_name, and run again",
            )
        elif node.name in known_nodes and not _at(node, known_nodes[node.name]):
            yield Problem(
                node.host,
                f"the cluster has a node {node.name} already, at {known_nodes[node.name].address}",
                "if it is that machine with another address, or that machine is gone: remove the "
                f"old node ({_REMOVE}{node.name}) and run again, so that it joins anew; if it is "
                "another machine: give this host another node_name",
            )


def _renamed(node: Node, known_nodes: Sequence[objects.Node]) -> str:
    names = [item.name for item in known_nodes if _at(node, item)]
    return "" if not names or node.name in names else names[0]


def _at(node: Node, status: objects.Node) -> bool:
    return bool(node.address) and node.address in status.address.split()


def _storage_class(settings: Settings, cluster: ClusterState) -> Iterator[Problem]:
    monitoring = settings.monitoring
    if not (monitoring.enabled and monitoring.storage.persistent):
        return
    classes = dict(cluster.classes)
    if monitoring.storage.provisioner == "local-path":
        classes[STORAGE_CLASS] = classes.get(STORAGE_CLASS, False) or not any(classes.values())
    if missing := missing_class(classes, monitoring.storage.class_name):
        yield Problem("", *missing)


def node_ports(settings: Settings) -> dict[str, int]:
    """The node ports that settings ask for, by setting."""
    monitoring = settings.monitoring
    if not monitoring.enabled:
        return {}
    return {f"monitoring.node_ports.{name}": port for name, port in monitoring.node_ports.items()}


def _taken_node_ports(settings: Settings, cluster: ClusterState) -> Iterator[Problem]:
    """A problem for each node port that somebody else's Service has."""
    own_prefix = f"{settings.monitoring.namespace}/"
    for name, port in node_ports(settings).items():
        service = cluster.node_ports.get(str(port), own_prefix)
        if not service.startswith(own_prefix):
            yield Problem(
                "", f"{name}: node port {port} belongs to Service {service}", "choose another one"
            )


def required_secrets(settings: Settings) -> dict[SecretName, list[str]]:
    """The site's own Secrets that settings name, and the keys that must be in them."""
    required: dict[SecretName, list[str]] = {}
    monitoring = settings.monitoring
    if monitoring.enabled:
        for needed in (remote_write.existing(settings), alerting.site_secrets(settings)):
            for name, keys in needed.items():
                required.setdefault((monitoring.namespace, name), []).extend(keys)
    return required


def missing_secrets(
    needed: Mapping[SecretName, Sequence[str]], existing: Mapping[SecretName, Sequence[str]]
) -> list[Problem]:
    """A problem for each Secret that lacks a key. + existing: keys in the Secrets that exist"""
    problems = []
    for (namespace, name), keys in needed.items():
        absent = [key for key in keys if key not in existing.get((namespace, name), ())]
        if absent:
            problems.append(
                Problem(
                    "",
                    f"settings name Secret {name} in namespace {namespace}, which lacks "
                    f"{', '.join(absent)}"
                    if existing.get((namespace, name))
                    else f"settings name Secret {name}, which is not in namespace {namespace}",
                    f"kubectl -n {namespace} create secret generic {name} "
                    + " ".join(f"--from-file={key}=FILE" for key in keys),
                )
            )
    return problems


def before_the_first_run(settings: Settings) -> list[str]:
    """What settings name that only a living cluster can have: where a first run would stop."""
    lines = [
        f"there is no cluster yet, so Secret {name} cannot be in its namespace {namespace}: the "
        "run stops where it is needed; make it then, and run again"
        for namespace, name in required_secrets(settings)
    ]
    monitoring, storage = settings.monitoring, settings.monitoring.storage
    is_own_class = storage.provisioner == "local-path" and storage.class_name in (
        None,
        STORAGE_CLASS,
    )
    if monitoring.enabled and storage.persistent and not is_own_class:
        which = f"StorageClass {storage.class_name}" if storage.class_name else "a StorageClass"
        lines.append(
            f"there is no cluster yet, so it cannot have {which}: the run stops where volumes are "
            "needed; make it then, and run again"
        )
    return lines
