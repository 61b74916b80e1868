"""The objects that kubeadm has made in the cluster, as it would make them now.

kubeadm prints those of its addons (`kubeadm init phase addon ... --print-manifest`); its RBAC is
the same in each cluster, and the kubelets' configuration is the one that it is given.
"""

import gzip
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from gpuboot.cluster.api_answers import parse_objects
from gpuboot.cluster.managed_objects import Key, ManagedObjects, Object, key, path
from gpuboot.cluster.manifests import YAML_LOADER
from gpuboot.cluster.release_objects import Drift, autoscaled, drifted
from gpuboot.cluster.set_fields import FieldDifference, field_differences
from gpuboot.hosts.fact_output import Fields
from gpuboot.plan import Decision
from gpuboot.plan.differences import text_change
from gpuboot.templates import TEMPLATES

_RBAC = (TEMPLATES / "kubernetes/kubeadm-rbac.yaml").read_text(encoding="utf-8")
COREFILE = ("ConfigMap", "kube-system", "coredns")
DNS = ("Deployment", "kube-system", "coredns")
KUBELET = ("ConfigMap", "kube-system", "kubelet-config")
# what kubeadm itself sets of a KubeletConfiguration (cmd/kubeadm/app/componentconfigs/kubelet.go)
_DEFAULTED = frozenset(
    (
        *("authentication", "authorization", "cgroupDriver", "clusterDNS", "clusterDomain"),
        *("healthzBindAddress", "healthzPort", "resolvConf", "rotateCertificates"),
        *("staticPodPath", "containerRuntimeEndpoint", "apiVersion", "kind"),
    )
)
# what `kubeadm init phase addon` prints, beside which its RBAC stands in a file
_ADDONS = (
    DNS,
    COREFILE,
    ("Service", "kube-system", "kube-dns"),
    ("ClusterRole", "", "system:coredns"),
    ("ClusterRoleBinding", "", "system:coredns"),
    ("ServiceAccount", "kube-system", "coredns"),
    ("ServiceAccount", "kube-system", "kube-proxy"),
    ("ClusterRoleBinding", "", "kubeadm:node-proxier"),
    ("Role", "kube-system", "kube-proxy"),
    ("RoleBinding", "kube-system", "kube-proxy"),
    ("ConfigMap", "kube-system", "kube-proxy"),
    ("DaemonSet", "kube-system", "kube-proxy"),
)
_UNSET: tuple[Any, ...] = (None, "", 0, False, "0s", "0", [], {})


@dataclass(frozen=True)
class KubeadmObjects:
    """What kubeadm would make, and what there is of it, read on the leader.

    + error: why there is no answer; "" when there is one
    + config: kubeadm's configuration, all documents
    + addons: what kubeadm prints of its addons
    """

    error: str = ""
    config: str = ""
    addons: str = ""
    objects: tuple[Object, ...] = ()


def kubeadm_drift(state: KubeadmObjects) -> list[Drift]:
    """The objects that a run makes again as kubeadm makes them; not what `decisions` leaves."""
    if state.error:
        return []
    live = {key(item): item for item in state.objects}
    compared = [
        _scaled(item, live.get(key(item)))
        for item in expected(state.addons)
        if key(item) != COREFILE or COREFILE not in live
    ]
    differing = [
        replace(drift, fields=fields)
        for drift in drifted(compared, ManagedObjects(objects=state.objects))
        if (fields := tuple(_readable(drift))) or drift.live is None
    ]
    return [*differing, *_kubelet_drift(state.config, live.get(KUBELET))]


def _kubelet_drift(config: str, live: Object | None) -> list[Drift]:
    if live is None:
        kind, namespace, name = KUBELET
        return [Drift({"kind": kind, "metadata": {"namespace": namespace, "name": name}})]
    fields = tuple(kubelet_fields(config, (live.get("data") or {}).get("kubelet", "")))
    return [Drift(live, live, fields)] if fields else []


def decisions(state: KubeadmObjects) -> list[Decision]:
    """What somebody has set otherwise than kubeadm, and a run leaves: the Corefile, more pods."""
    if state.error:
        return []
    live = {key(item): item for item in state.objects}
    expected_objects = {key(item): item for item in expected(state.addons)}
    differences: list[Decision] = []
    if COREFILE in live:
        differences += _corefile(expected_objects[COREFILE], live[COREFILE])
    if DNS in live and not autoscaled(live[DNS]):
        differences += _more_pods(expected_objects[DNS], live[DNS])
    return differences


def _corefile(desired: Object, live: Object) -> Iterator[Decision]:
    texts = [(item.get("data") or {}).get("Corefile", "") for item in (desired, live)]
    if texts[0] != texts[1]:
        yield Decision(
            what="ConfigMap kube-system/coredns: Corefile",
            why="somebody has changed it, which a run leaves. For kubeadm's: `kubectl -n "
            "kube-system delete configmap coredns`, then run deploys/site.py",
            diff=text_change("", *texts).diff,
        )


def _more_pods(desired: Object, live: Object) -> Iterator[Decision]:
    usual, number = (item["spec"].get("replicas", 1) for item in (desired, live))
    if number > usual:
        yield Decision(
            what=f"Deployment kube-system/coredns: {number} pods instead of {usual}",
            why="somebody wants more, which a run leaves. For kubeadm's number: `kubectl -n "
            f"kube-system scale deployment coredns --replicas={usual}`",
        )


def names() -> list[Key]:
    """All objects that a cluster of kubeadm's has."""
    return [*_ADDONS, *map(key, _rbac()), KUBELET]


def paths() -> list[str]:
    """Where the API server has these objects."""
    return list(map(path, names()))


def parse(lines: Iterable[str]) -> KubeadmObjects:
    """What `deploys/parts/cluster/kubeadm_objects.sh` printed. Raises `FactOutputError`."""
    values = Fields(lines)
    error, objects = parse_objects(values)
    if error:
        return KubeadmObjects(error)
    config, addons = (
        gzip.decompress(b64decode(values.first(name))).decode() for name in ("config", "addons")
    )
    return KubeadmObjects(config=config, addons=addons, objects=objects)


def expected(addons: str) -> list[Object]:
    """The objects, less the kubelets' ConfigMap, which `kubelet_fields` compares."""
    objects = [*_documents(addons), *_rbac()]
    for item in objects:
        item["metadata"].pop("resourceVersion", None)
    return objects


def _rbac() -> list[Object]:
    return _documents(_RBAC)


def _scaled(item: Object, live: Object | None) -> Object:
    """A Deployment that has more pods than kubeadm gives it, or an autoscaler, keeps them."""
    if live is None or item["kind"] != "Deployment":
        return item
    number = live["spec"].get("replicas", 1)
    if number <= item["spec"]["replicas"] and not autoscaled(live):
        return item
    return {**item, "spec": {**item["spec"], "replicas": number}}


def _readable(drift: Drift) -> Iterator[FieldDifference]:
    for place, now, desired in drift.fields:
        if isinstance(now, str) and isinstance(desired, str) and "\nkind: " in desired:
            yield from _of_text(place, now, desired)
        else:
            yield place, now, desired


def _of_text(place: str, now: str, desired: str) -> Iterator[FieldDifference]:
    """The fields in which two configurations differ; their texts where they are not readable."""
    try:
        was, becomes = (
            dict(_leaf_values(yaml.load(text, Loader=YAML_LOADER))) for text in (now, desired)
        )
    except (yaml.YAMLError, AttributeError):
        yield place, now, desired
        return
    differing = [name for name in {**was, **becomes} if was.get(name) != becomes.get(name)]
    yield from ((f"{place}.{name}", was.get(name), becomes.get(name)) for name in differing)
    if not differing:
        yield place, now, desired


def _leaf_values(item: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in item.items():
        if isinstance(value, Mapping) and value:
            yield from _leaf_values(value, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", value


def kubelet_fields(config: str, live: str) -> Iterator[tuple[str, Any, Any]]:
    """Fields of the kubelets' configuration that are otherwise than kubeadm was given them."""
    configuration = next(
        item for item in _documents(config) if item["kind"] == "KubeletConfiguration"
    )
    present = yaml.load(live, Loader=YAML_LOADER) or {}
    yield from (
        (f"kubelet.{path}", now, desired)
        for path, now, desired in field_differences(configuration, present)
    )
    for name, value in present.items():
        if name not in configuration and name not in _DEFAULTED and not _unset(value):
            yield f"kubelet.{name}", value, None


def _unset(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_unset(item) for item in value.values())
    return value in _UNSET


def _documents(text: str) -> list[Object]:
    return [item for item in yaml.load_all(text, Loader=YAML_LOADER) if item]
