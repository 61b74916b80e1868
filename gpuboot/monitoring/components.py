"""What a cluster of gpuboot consists of, by name: the list of what must not be missing.

Each part names its objects itself: kubeadm's, the manifests of network and storage, and the Helm
releases, whose own records say what is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from gpuboot.cluster import flannel, kubeadm_objects, local_path, metrics_server
from gpuboot.cluster.helm_releases import release_path
from gpuboot.cluster.managed_objects import KINDS, Key, key
from gpuboot.cluster.manifests import YAML_LOADER
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.monitoring import objects as monitoring
from gpuboot.monitoring.charts import log_values
from gpuboot.monitoring.charts.exporter import needs_runtime_class
from gpuboot.monitoring.charts.monitoring_values import STACK
from gpuboot.monitoring.charts.service_monitors import (
    EXPORTER_NAMESPACE,
    EXPORTER_RELEASE,
)

STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
# kind -> namespace and name of each object; None: the API server does not know the kind
Names = Mapping[str, set[tuple[str, str]] | None]


@dataclass(frozen=True)
class Expected:
    """What there must be.

    + objects: those that a run makes by itself; + releases: namespace and name of Helm's
    """

    objects: tuple[Key, ...] = ()
    releases: tuple[tuple[str, str], ...] = ()

    @property
    def paths(self) -> list[str]:
        """Where Helm's records of the releases are."""
        return [release_path(name, namespace) for namespace, name in self.releases]


@dataclass(frozen=True)
class Missing:
    """What there is not.

    + objects: of kinds that the API server knows, in namespaces that there are
    + definitions: names of custom resource definitions
    + releases: Helm's records, as `namespace/name`
    """

    objects: tuple[Key, ...] = ()
    definitions: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()


def expected(settings: Settings, lock: Lock, nodes: Sequence[Node]) -> Expected:
    """What these settings make a cluster of."""
    controls = [node.name for node in nodes if node.role == "control_plane"]
    releases = tuple(_releases(settings))
    objects = [
        *kubeadm_objects.names(),
        ("ConfigMap", "kube-system", "kubeadm-config"),
        *(("Pod", "kube-system", f"{part}-{node}") for part in STATIC_PODS for node in controls),
        *_of_manifest(flannel.manifest(settings, lock, "localhost:6443")),
        *(("Namespace", "", namespace) for namespace, _ in releases),
    ]
    if settings.cluster.metrics_server:
        objects += _of_manifest(metrics_server.approver(settings, lock, nodes))
        objects += _of_manifest(metrics_server.server(settings, lock))
    if settings.monitoring.enabled:
        objects += map(key, monitoring.objects(settings, nodes))
        if settings.monitoring.storage.provisioner == "local-path":
            objects += _of_manifest(local_path.local_path(settings, lock))
    if settings.gpu_operator.enabled or needs_runtime_class(settings):
        objects.append(("RuntimeClass", "", "nvidia"))
    return Expected(tuple(dict.fromkeys(objects)), releases)


def namespaces(settings: Settings) -> list[str]:
    """The namespaces that a run makes, and what is in them."""
    names = {"kube-flannel", *(namespace for namespace, _ in _releases(settings))}
    if settings.monitoring.enabled and settings.monitoring.storage.provisioner == "local-path":
        names.add(local_path.NAMESPACE)
    return sorted(names)


def _releases(settings: Settings) -> Iterable[tuple[str, str]]:
    if settings.gpu_operator.enabled:
        yield settings.gpu_operator.namespace, "gpu-operator"
    if settings.exporter.kind == "chart":
        yield EXPORTER_NAMESPACE, EXPORTER_RELEASE
    if settings.monitoring.enabled:
        yield settings.monitoring.namespace, STACK
    yield from ((settings.monitoring.namespace, name) for name in log_values.releases(settings))


def _of_manifest(text: str) -> list[Key]:
    items: Iterable[dict[str, Any]] = yaml.load_all(text, Loader=YAML_LOADER)
    return [key(item) for item in items if item]


def missing(
    expected: Expected, released: Mapping[str, Sequence[Key] | None], names: Names
) -> Missing:
    """What is not there; nothing of kinds and releases that could not be read.

    + released: what releases consist of, by `Expected.paths`; None: there is no such release
    + names: of what there is
    """
    objects = dict.fromkeys(expected.objects)
    unreadable = []
    for (namespace, name), path in zip(expected.releases, expected.paths, strict=True):
        members = released.get(path, ())
        if members is None:
            unreadable.append(f"{namespace}/{name}")
        for kind, space, item in members or ():
            if kind in KINDS:
                scope = (space or namespace) if KINDS[kind].namespaced else ""
                objects[kind, scope, item] = None
    namespaces = names.get("Namespace")
    absent = [item for item in objects if _is_missing(item, names)]
    if _is_metrics_server_foreign(absent, names):
        absent = [item for item in absent if not _is_of_metrics_server(item)]
    undefined = {kind for kind, _, _ in absent if names[kind] is None}
    return Missing(
        tuple(
            item
            for item in absent
            if item[0] not in undefined
            and (not item[1] or not namespaces or ("", item[1]) in namespaces)
        ),
        tuple(sorted(_definition(kind) for kind in undefined)),
        tuple(unreadable),
    )


def parse_missing(answer: Mapping[str, Any]) -> Missing:
    """What there is not, out of its JSON."""
    kind, namespace, name = range(3)
    return Missing(
        tuple((row[kind], row[namespace], row[name]) for row in answer.get("objects", ())),
        tuple(answer.get("definitions", ())),
        tuple(answer.get("releases", ())),
    )


def _is_metrics_server_foreign(absent: Iterable[Key], names: Names) -> bool:
    """Whether something else serves resource metrics, beside which gpuboot installs nothing."""
    own_objects = {
        (kind, metrics_server.NAMESPACE, metrics_server.SERVER)
        for kind in ("Deployment", "Service")
    }
    return own_objects <= set(absent) and ("", metrics_server.API_SERVICE) in (
        names.get("APIService") or ()
    )


def _is_of_metrics_server(item: Key) -> bool:
    _, _, name = item
    return metrics_server.SERVER in name or name == "system:aggregated-metrics-reader"


def _is_missing(item: Key, names: Names) -> bool:
    kind, namespace, name = item
    return kind in names and (namespace, name) not in (names[kind] or ())


def _definition(kind: str) -> str:
    return f"{KINDS[kind].plural}.{KINDS[kind].version.partition('/')[0]}"
