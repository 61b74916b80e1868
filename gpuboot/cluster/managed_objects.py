"""Objects of Helm releases and of gpuboot, as the API server has them.

They are found by the label that both put on everything they make. Kinds of `KINDS` alone: others
that a chart makes are not compared.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.cluster.api_answers import parse_answers, parse_objects
from gpuboot.hosts.fact_output import Fields

Object = dict[str, Any]
Key = tuple[str, str, str]  # kind, namespace ("" for none), name


@dataclass(frozen=True)
class Kind:
    """A kind of objects: its API version, how the API server's paths name it, and its scope."""

    version: str
    plural: str
    namespaced: bool = True

    @property
    def path(self) -> str:
        """Where the API server lists all of them."""
        root = "/apis" if "/" in self.version else "/api"
        return f"{root}/{self.version}/{self.plural}"


_RBAC, _NETWORK = "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1"
_WEBHOOKS, _PROMETHEUS = "admissionregistration.k8s.io/v1", "monitoring.coreos.com/v1"
KINDS = {
    "ConfigMap": Kind("v1", "configmaps"),
    "Namespace": Kind("v1", "namespaces", namespaced=False),
    "PersistentVolumeClaim": Kind("v1", "persistentvolumeclaims"),
    "ResourceQuota": Kind("v1", "resourcequotas"),
    "Service": Kind("v1", "services"),
    "ServiceAccount": Kind("v1", "serviceaccounts"),
    "DaemonSet": Kind("apps/v1", "daemonsets"),
    "Deployment": Kind("apps/v1", "deployments"),
    "StatefulSet": Kind("apps/v1", "statefulsets"),
    "PodDisruptionBudget": Kind("policy/v1", "poddisruptionbudgets"),
    "Ingress": Kind(_NETWORK, "ingresses"),
    "NetworkPolicy": Kind(_NETWORK, "networkpolicies"),
    "ClusterRole": Kind(_RBAC, "clusterroles", namespaced=False),
    "ClusterRoleBinding": Kind(_RBAC, "clusterrolebindings", namespaced=False),
    "Role": Kind(_RBAC, "roles"),
    "RoleBinding": Kind(_RBAC, "rolebindings"),
    "MutatingWebhookConfiguration": Kind(
        _WEBHOOKS, "mutatingwebhookconfigurations", namespaced=False
    ),
    "ValidatingWebhookConfiguration": Kind(
        _WEBHOOKS, "validatingwebhookconfigurations", namespaced=False
    ),
    "RuntimeClass": Kind("node.k8s.io/v1", "runtimeclasses", namespaced=False),
    "StorageClass": Kind("storage.k8s.io/v1", "storageclasses", namespaced=False),
    "APIService": Kind("apiregistration.k8s.io/v1", "apiservices", namespaced=False),
    "PriorityClass": Kind("scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
    "Alertmanager": Kind(_PROMETHEUS, "alertmanagers"),
    "PodMonitor": Kind(_PROMETHEUS, "podmonitors"),
    "Prometheus": Kind(_PROMETHEUS, "prometheuses"),
    "PrometheusRule": Kind(_PROMETHEUS, "prometheusrules"),
    "ServiceMonitor": Kind(_PROMETHEUS, "servicemonitors"),
    "ClusterPolicy": Kind("nvidia.com/v1", "clusterpolicies", namespaced=False),
    "NVIDIADriver": Kind("nvidia.com/v1alpha1", "nvidiadrivers", namespaced=False),
    "NodeFeatureRule": Kind("nfd.k8s-sigs.io/v1alpha1", "nodefeaturerules", namespaced=False),
}
# their definitions come with charts
_CUSTOM = (_PROMETHEUS, "nvidia.com/", "nfd.k8s-sigs.io/")

_SELECTOR = "labelSelector=app.kubernetes.io%2Fmanaged-by%20in%20%28Helm%2Cgpuboot%29"
PATHS = {kind: f"{definition.path}?{_SELECTOR}" for kind, definition in KINDS.items()}
SECRETS = f"/api/v1/secrets?pretty=true&{_SELECTOR}"


@dataclass(frozen=True)
class ManagedSecret:
    """A Secret, without its values. digests: SHA-256 of each value's base64, by key"""

    namespace: str
    name: str
    digests: Mapping[str, str]


@dataclass(frozen=True)
class ManagedObjects:
    """What there is of them.

    + error: why there is no answer; "" when there is one
    + objects: whole; without Secrets
    + unknown: kinds that the API server does not know, since their definition is not there
    """

    error: str = ""
    objects: tuple[Object, ...] = ()
    secrets: tuple[ManagedSecret, ...] = ()
    unknown: tuple[str, ...] = ()


def undefined(managed: ManagedObjects) -> set[str]:
    """Names of the custom resource definitions that are not there."""
    kinds = (KINDS[kind] for kind in managed.unknown)
    return {f"{kind.plural}.{kind.version.partition('/')[0]}" for kind in kinds}


def key(item: Mapping[str, Any]) -> Key:
    """What tells an object from all others."""
    meta = item["metadata"]
    return item["kind"], meta.get("namespace") or "", meta["name"]


def path(item: Key) -> str:
    """Where the API server has an object of `KINDS`."""
    kind, namespace, name = item
    root, plural = KINDS[kind].path.rsplit("/", 1)
    return "/".join([root, *(["namespaces", namespace] if namespace else []), plural, name])


def parse_present(lines: Iterable[str]) -> ManagedObjects:
    """What `deploys/parts/cluster/answers.sh` printed of objects. Raises `FactOutputError`."""
    error, objects = parse_objects(Fields(lines))
    return ManagedObjects(error, objects)


def parse_managed(lines: Iterable[str]) -> ManagedObjects:
    """What `deploys/parts/cluster/managed_objects.sh` printed. Raises `FactOutputError`."""
    output_lines = list(lines)
    values = Fields(output_lines)
    custom = [path for kind, path in PATHS.items() if KINDS[kind].version.startswith(_CUSTOM)]
    answers = parse_answers(output_lines, list(PATHS.values()), custom)
    if answers.error:
        return ManagedObjects(answers.error)
    if (status := values.first("secrets")) != "200":
        return ManagedObjects(f"{SECRETS}: the API server answers {status}")
    objects = tuple(
        {"apiVersion": KINDS[kind].version, **item, "kind": kind}
        for kind, path in PATHS.items()
        for item in answers.items(path)
    )
    unknown = tuple(kind for kind, path in PATHS.items() if path not in answers.documents)
    return ManagedObjects(objects=objects, secrets=_secrets(values), unknown=unknown)


def _secrets(values: Fields) -> tuple[ManagedSecret, ...]:
    digests: dict[str, dict[str, str]] = defaultdict(dict)
    sums = values.pairs("sum")
    for number, namespace, name, data_key in values.words("value", 4):
        digests[f"{namespace}/{name}"][data_key] = sums[number]
    return tuple(
        ManagedSecret(namespace, name, digests[f"{namespace}/{name}"])
        for namespace, name in values.words("secret", 2)
    )
