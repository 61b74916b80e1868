"""What a cluster consists of, and what of it is missing."""

from __future__ import annotations

import pytest

from gpuboot.cluster.managed_objects import KINDS, Key
from gpuboot.config.inventory import Node
from gpuboot.monitoring.components import Expected, Names, expected, missing
from gpuboot.site.load_site import load

DNS: Key = ("Deployment", "kube-system", "coredns")
POLICY: Key = ("ClusterPolicy", "", "cluster-policy")
OPERATOR = ("gpu-operator", "gpu-operator")
EXPECTED = Expected((DNS, ("Namespace", "", "gpu-operator")), (OPERATOR,))
[PATH] = EXPECTED.paths
# as a release's manifest names them: without a namespace, and a kind that is not compared
RELEASED = {
    PATH: (("ClusterPolicy", "", "cluster-policy"), ("ServiceAccount", "", "web"), ("Job", "", "x"))
}
PRESENT: dict[str, set[tuple[str, str]] | None] = {
    "Namespace": {("", "gpu-operator"), ("", "kube-system")},
    "Deployment": {("kube-system", "coredns")},
    "ClusterPolicy": {("", "cluster-policy")},
    "ServiceAccount": {("gpu-operator", "web")},
}


def without(kind: str) -> dict[str, set[tuple[str, str]] | None]:
    return {**PRESENT, kind: set()}


def test_nothing_is_missing_of_a_cluster_that_has_all() -> None:
    result = missing(EXPECTED, RELEASED, PRESENT)
    assert (result.objects, result.definitions, result.releases) == ((), (), ())


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("Deployment", DNS),
        ("ClusterPolicy", POLICY),
        ("ServiceAccount", ("ServiceAccount", "gpu-operator", "web")),
    ],
)
def test_what_is_gone_is_named(kind: str, item: Key) -> None:
    assert missing(EXPECTED, RELEASED, without(kind)).objects == (item,)


def test_of_a_kind_that_is_not_known_the_definition_is_missing() -> None:
    result = missing(EXPECTED, RELEASED, {**PRESENT, "ClusterPolicy": None})
    assert (result.objects, result.definitions) == ((), ("clusterpolicies.nvidia.com",))


def test_of_a_namespace_that_is_gone_it_alone_is_named() -> None:
    names: Names = {**without("ServiceAccount"), "Namespace": {("", "kube-system")}}
    assert missing(EXPECTED, RELEASED, names).objects == (("Namespace", "", "gpu-operator"),)


def test_a_release_without_a_record_is_named() -> None:
    assert missing(EXPECTED, {PATH: None}, PRESENT).releases == ("gpu-operator/gpu-operator",)


def test_what_could_not_be_read_is_not_missing() -> None:
    names = {kind: result for kind, result in PRESENT.items() if kind != "Deployment"}
    result = missing(EXPECTED, {}, names)
    assert (result.objects, result.releases) == ((), ())


def test_the_list_has_each_part_of_a_site() -> None:
    settings, lock = load({})
    nodes = (
        Node("cp1", "cp1", "10.0.0.1", "control_plane", 0, leader=True),
        Node("gpu1", "gpu1", "10.0.0.2", "worker", 2, leader=False),
    )
    components = expected(settings, lock, nodes)
    for item in (
        *(DNS, ("DaemonSet", "kube-system", "kube-proxy"), ("RuntimeClass", "", "nvidia")),
        ("ClusterRoleBinding", "", "kubeadm:node-autoapprove-certificate-rotation"),
        ("ConfigMap", "kube-system", "kubeadm-config"),
        ("Pod", "kube-system", "kube-scheduler-cp1"),
        ("DaemonSet", "kube-flannel", "kube-flannel-ds"),
        ("Deployment", "local-path-storage", "local-path-provisioner"),
        ("Namespace", "", "monitoring"),
    ):
        assert item in components.objects
    assert ("Pod", "kube-system", "kube-scheduler-gpu1") not in components.objects
    assert set(components.releases) == {OPERATOR, ("monitoring", "kube-prometheus-stack")}
    assert {kind for kind, _, _ in components.objects} <= {"Pod", *KINDS}


@pytest.mark.parametrize(
    ("services", "missing_kinds"),
    [
        ((), set[str]()),  # the API's is in another namespace
        ((("kube-system", "metrics-server"),), {"Deployment", "ClusterRole"}),
    ],
)
def test_a_metrics_server_of_somebody_else_is_not_missing(
    services: tuple[tuple[str, str], ...], missing_kinds: set[str]
) -> None:
    objects = (
        ("Deployment", "kube-system", "metrics-server"),
        ("Service", "kube-system", "metrics-server"),
        ("ClusterRole", "", "system:metrics-server"),
        ("APIService", "", "v1beta1.metrics.k8s.io"),
    )
    names: dict[str, set[tuple[str, str]] | None] = {
        "Deployment": set(),
        "ClusterRole": set(),
        "Service": set(services),
        "Namespace": {("", "kube-system")},
        "APIService": {("", "v1beta1.metrics.k8s.io")},
    }
    absent = missing(Expected(objects), {}, names).objects
    assert {kind for kind, _, _ in absent} == missing_kinds
