"""What others have changed of kubeadm's objects, on those of a real cluster of kubeadm 1.36.3."""

from __future__ import annotations

import copy
import gzip
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from gpuboot.cluster.kubeadm_objects import (
    COREFILE,
    DNS,
    KUBELET,
    KubeadmObjects,
    expected,
    kubeadm_drift,
    parse,
    paths,
)
from gpuboot.cluster.managed_objects import Key, key, path
from tests.unit import recordings

RECORDED = recordings.kubeadm_objects()
DNS_SERVICE = ("Service", "kube-system", "kube-dns")
PROXY = ("ConfigMap", "kube-system", "kube-proxy")
PROXY_PODS = ("DaemonSet", "kube-system", "kube-proxy")
ROTATION = ("ClusterRoleBinding", "", "kubeadm:node-autoapprove-certificate-rotation")
BOOTSTRAP = ("ClusterRoleBinding", "", "kubeadm:kubelet-bootstrap")
NODES = ("ClusterRole", "", "kubeadm:get-nodes")
DNS_ROLE = ("ClusterRole", "", "system:coredns")
KUBELET_ROLE = ("Role", "kube-system", "kubeadm:kubelet-config")
PROXY_BINDING = ("RoleBinding", "kube-system", "kube-proxy")
INFO = ("RoleBinding", "kube-public", "kubeadm:bootstrap-signer-clusterinfo")

Change = Callable[[dict[str, Any]], Any]


def site(name: Key | None = None, change: Change | None = None) -> KubeadmObjects:
    objects = copy.deepcopy(RECORDED["objects"])
    if name and change is None:
        objects = [item for item in objects if key(item) != name]
    elif change:
        change(next(item for item in objects if key(item) == name))
    return KubeadmObjects("", RECORDED["config"], RECORDED["addons"], tuple(objects))


def replaced(part: str, old: str, new: str) -> Change:
    def change(item: dict[str, Any]) -> None:
        assert old in item["data"][part]
        item["data"][part] = item["data"][part].replace(old, new)

    return change


def pod(item: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = item["spec"]["template"]["spec"]
    return spec


def container(item: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = pod(item)["containers"][0]
    return first


def by_kubectl(fields: dict[str, Any], change: Change) -> Change:
    """A change as `kubectl edit` makes it: the API server notes what it has set."""

    def edit(item: dict[str, Any]) -> None:
        change(item)
        entry = {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields}
        item["metadata"].setdefault("managedFields", []).append(entry)

    return edit


_SELECTOR: dict[str, Any] = {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}}
_ENV: dict[str, Any] = {
    "f:spec": {
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"kube-proxy"}': {
                        "f:env": {'k:{"name":"GODEBUG"}': {".": {}, "f:name": {}, "f:value": {}}}
                    }
                }
            }
        }
    }
}
# object, change, path that is named, value that is in force
CHANGES: list[tuple[Key, Change, str, Any]] = [
    (KUBELET, replaced("kubelet", "kind: Kub", "maxPods: 20\nkind: Kub"), "kubelet.maxPods", 20),
    (
        KUBELET,
        replaced("kubelet", "failSwapOn: false", "failSwapOn: true"),
        "kubelet.failSwapOn",
        True,
    ),
    (
        KUBELET,
        replaced("kubelet", "memory.available: 100Mi", "memory.available: 10Mi"),
        "kubelet.evictionHard.memory.available",
        "10Mi",
    ),
    (
        KUBELET,
        replaced("kubelet", "cgroupDriver: systemd", "cgroupDriver: cgroupfs"),
        "kubelet.cgroupDriver",
        "cgroupfs",
    ),
    (
        PROXY,
        replaced("config.conf", "mode: nftables", "mode: iptables"),
        "data.config.conf.mode",
        "iptables",
    ),
    (
        PROXY,
        replaced("config.conf", "maxPerCore: 0", "maxPerCore: null"),
        "data.config.conf.conntrack.maxPerCore",
        None,
    ),
    (
        PROXY,
        replaced("config.conf", "0.0.0.0:10249", "127.0.0.1:10249"),
        "data.config.conf.metricsBindAddress",
        "127.0.0.1:10249",
    ),
    (
        PROXY,
        replaced("kubeconfig.conf", "gpuboot-api:6443", "10.0.0.1:6443"),
        "data.kubeconfig.conf.clusters",
        [
            {
                "cluster": {
                    "certificate-authority": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
                    "server": "https://10.0.0.1:6443",
                },
                "name": "default",
            }
        ],
    ),
    (DNS, lambda item: container(item).update(image="coredns:v1.10.0"), "image", "coredns:v1.10.0"),
    (DNS, lambda item: item["spec"].update(replicas=1), "spec.replicas", 1),
    (DNS, lambda item: item["spec"].update(replicas=0), "spec.replicas", 0),
    (
        DNS,
        lambda item: container(item)["resources"]["limits"].update(memory="20Mi"),
        "resources.limits.memory",
        "20Mi",
    ),
    (DNS, lambda item: container(item).update(args=["-conf", "/x"]), "args", ["-conf", "/x"]),
    (
        DNS,
        by_kubectl(_SELECTOR, lambda item: pod(item)["nodeSelector"].update(disk="ssd")),
        "nodeSelector.disk",
        "ssd",
    ),
    (
        DNS_SERVICE,
        lambda item: item["spec"].update(selector={"k8s-app": "x"}),
        "spec.selector.k8s-app",
        "x",
    ),
    (
        PROXY_PODS,
        lambda item: container(item).update(image="kube-proxy:v1"),
        "image",
        "kube-proxy:v1",
    ),
    (PROXY_PODS, lambda item: pod(item).update(tolerations=[]), "tolerations", []),
    (
        PROXY_PODS,
        by_kubectl(
            _ENV, lambda item: container(item)["env"].append({"name": "GODEBUG", "value": "1"})
        ),
        "env[GODEBUG]",
        {"name": "GODEBUG", "value": "1"},
    ),
    (ROTATION, lambda item: item["subjects"][0].update(name="none"), "subjects[0].name", "none"),
    (ROTATION, lambda item: item["roleRef"].update(name="view"), "roleRef.name", "view"),
    (BOOTSTRAP, lambda item: item.pop("subjects"), "subjects", None),
    (NODES, lambda item: item["rules"][0].update(verbs=["*"]), "rules[0].verbs", ["*"]),
    (DNS_ROLE, lambda item: item["rules"].pop(), "rules", "shorter"),
    (KUBELET_ROLE, lambda item: item["rules"][0].update(resourceNames=[]), "resourceNames", []),
]


@pytest.mark.parametrize(("name", "change", "field", "value"), CHANGES)
def test_each_change_is_named_by_object_field_and_value(
    name: Key, change: Change, field: str, value: Any
) -> None:
    [drift] = kubeadm_drift(site(name, change))
    assert key(drift.desired) == name
    [(place, now, expected)] = drift.fields
    assert place.endswith(field)
    assert now != expected
    if value != "shorter":
        assert now == value


@pytest.mark.parametrize(
    "name",
    [ROTATION, DNS, COREFILE, KUBELET, PROXY, DNS_ROLE, PROXY_BINDING, INFO, DNS_SERVICE],
)
def test_what_is_deleted_is_named(name: Key) -> None:
    [drift] = kubeadm_drift(site(name))
    assert key(drift.desired) == name
    assert drift.live is None


def _restarted(item: dict[str, Any]) -> None:
    marks = item["spec"]["template"]["metadata"].setdefault("annotations", {})
    marks["kubectl.kubernetes.io/restartedAt"] = "2026-11-25T08:00:00Z"


def _labelled(item: dict[str, Any]) -> None:
    item["metadata"].setdefault("labels", {})["owner"] = "team"


LEGITIMATE: list[tuple[Key, Change]] = [
    (DNS, _restarted),
    (PROXY_PODS, _restarted),
    (DNS, _labelled),
    (ROTATION, _labelled),
    (DNS, lambda item: container(item).update(terminationMessagePolicy="File")),
    (DNS, lambda item: container(item)["resources"]["requests"].update(cpu="0.1")),
    (DNS_SERVICE, lambda item: item["spec"].update(ipFamilies=["IPv4"], clusterIPs=["10.96.0.10"])),
]


@pytest.mark.parametrize(("name", "change"), LEGITIMATE)
def test_what_kubernetes_and_the_site_may_change_is_not_named(name: Key, change: Change) -> None:
    assert not kubeadm_drift(site(name, change))


def test_a_cluster_as_kubeadm_made_it_has_no_drift() -> None:
    assert not kubeadm_drift(site())


def test_settings_of_the_site_are_what_is_asked_for() -> None:
    state = site(KUBELET, replaced("kubelet", "kind: Kub", "maxPods: 200\nkind: Kub"))
    config = state.config.replace("cgroupDriver: systemd", "cgroupDriver: systemd\nmaxPods: 200")
    assert not kubeadm_drift(KubeadmObjects("", config, state.addons, state.objects))


def test_a_binding_of_another_role_is_made_anew() -> None:
    [drift] = kubeadm_drift(site(ROTATION, lambda item: item["roleRef"].update(name="view")))
    assert drift.remade


def test_all_objects_that_kubeadm_prints_are_asked_for() -> None:
    names = {*map(key, expected(RECORDED["addons"])), KUBELET}
    assert sorted(map(path, names)) == sorted(paths())


def _packed(text: str) -> str:
    return b64encode(gzip.compress(text.encode())).decode()


def test_answers_are_read_and_what_is_not_there_is_missing() -> None:
    live = json.dumps(RECORDED["objects"][0])
    answers = f'{live}\n200 \x1e\n{{"message": "not found"}}\n404 \x1e\n'
    lines = [f"config\t{_packed('a')}", f"addons\t{_packed('b')}", f"answers\t{_packed(answers)}"]
    assert parse([*lines, "end\tok"]) == KubeadmObjects("", "a", "b", (json.loads(live),))
    assert parse(["error\tkubeadm: no such flag", "end\tok"]).error == "kubeadm: no such flag"
    refusal = f"answers\t{_packed(chr(10) + '500 ' + chr(30) + chr(10))}"
    assert parse([*lines[:2], refusal, "end\tok"]).error == "500"
