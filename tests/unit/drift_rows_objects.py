"""Changes of the cluster's objects, each with what drift or the proof names of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from gpuboot.cluster import kubelet_in_force, manifests
from gpuboot.cluster.kubeadm_objects import COREFILE, DNS, KUBELET, decisions, kubeadm_drift
from gpuboot.cluster.managed_objects import Key, ManagedObjects, Object
from gpuboot.cluster.release_objects import Drift, drifted
from gpuboot.monitoring.stack_objects import ExpectedObjects
from gpuboot.plan.restarted_workloads import label
from gpuboot.verify.checks import node_metrics
from gpuboot.verify.checks.one_file import Answer
from gpuboot.verify.evidence import Target
from tests.unit.drift_plants import Row
from tests.unit.evidence import evidence, metrics
from tests.unit.test_added_fields import drift_of
from tests.unit.test_kubeadm_objects import (
    DNS_SERVICE,
    NODES,
    PROXY,
    ROTATION,
    Change,
    container,
    replaced,
    site,
)

OPERATOR: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "gpu-operator", "namespace": "gpu-operator"},
    "spec": {"replicas": 1},
}
MONITOR: Object = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "ServiceMonitor",
    "metadata": {"name": "nvidia-dcgm-exporter", "namespace": "gpu-operator"},
    "spec": {"endpoints": [{"interval": "15s"}]},
}
BOARD: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "gpu", "namespace": "monitoring"},
    "data": {"gpu.json": "{}"},
}


def kubeadm(name: Key, change: Change | None = None) -> list[str]:
    """What is named of an object of kubeadm's that is changed, or gone."""
    state = site(name, change)
    decision_texts = [f"{item.what}: {item.why} {item.diff}" for item in decisions(state)]
    return [*_texts(kubeadm_drift(state)), *decision_texts]


def released(change: str) -> list[str]:
    """What is named of an object of a release after a recorded change."""
    return _texts(drift_of(change, "after"))


def kept_by_helm(item: Object, **spec: Any) -> list[str]:
    """What is named of a release's object with another specification; of none: it is gone."""
    live = ({**item, "spec": {**item["spec"], **spec}},) if spec else ()
    return _texts(drifted([item], ManagedObjects(objects=live)))


def by_another(item: Object, field: str, value: Any) -> list[str]:
    """What is named of a release's object of which `kubectl edit` has set a field as a whole."""
    edit = {"manager": "kubectl-edit", "operation": "Update"}
    managed = {"managedFields": [{**edit, "fieldsV1": {"f:spec": {f"f:{field}": {}}}}]}
    live = {**item, "metadata": {**item["metadata"], **managed}}
    return _texts(
        drifted([item], ManagedObjects(objects=({**live, "spec": {**item["spec"], field: value}},)))
    )


def board(data: dict[str, str] | None) -> list[str]:
    """What is named of an object of ours with other data; None: it is gone."""
    live = [] if data is None else [{**BOARD, "data": data}]
    change = manifests.difference([BOARD], live, None)
    items = [*change.apply, *change.remake, *(replacement.item for replacement in change.replace)]
    return [label(item) for item in items]


def flags(text: str) -> list[str]:
    """What is named of kubeadm's file of the kubelet's flags."""
    return kubelet_in_force.stray_flags(f'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.2 {text}"')


def measured(*names: str) -> list[str]:
    """What the proof names of nodes, of which node-exporter measures only these."""
    addresses = {"cp1": "10.77.0.11", "gpu1": "10.77.0.21", "gpu2": "10.77.0.22"}
    nodes = [
        {
            "metadata": {"name": name},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]},
        }
        for name, address in addresses.items()
    ]
    targets = tuple(
        Target(
            job="node-exporter", node="", health="up", url=f"http://{addresses[node]}:9100/metrics"
        )
        for node in names
    )
    observed = replace(
        evidence(),
        metrics=metrics(targets=targets),
        answers={"nodes": Answer(json.dumps({"items": nodes}).encode())},
        expected_objects=ExpectedObjects(objects={}),
    )
    failed = [item for item in node_metrics.evaluate(observed) if item.status == "fail"]
    return [f"{item.link} {item.node}: {item.detail}: {item.remedy}" for item in failed]


def _texts(drifts: list[Drift]) -> list[str]:
    return [
        f"{label(drift.desired)} {'deleted' if drift.live is None else drift.fields} "
        f"{drift.applied or ''}"
        for drift in drifts
    ]


def _image(item: dict[str, Any]) -> None:
    container(item)["image"] = "registry.k8s.io/coredns/coredns:v1.10.0"


def _other_role(item: dict[str, Any]) -> None:
    item["rules"] = []


KUBEADM_ROWS = (
    Row(
        "20 pods in kubelet-config",
        lambda: kubeadm(KUBELET, replaced("kubelet", "kind: Kub", "maxPods: 20\nkind: Kub")),
        ("ConfigMap kube-system/kubelet-config", "kubelet.maxPods", "20"),
    ),
    Row(
        "kube-proxy by iptables",
        lambda: kubeadm(PROXY, replaced("config.conf", "mode: nftables", "mode: iptables")),
        ("ConfigMap kube-system/kube-proxy", "mode", "iptables"),
    ),
    Row(
        "a Corefile of somebody's",
        lambda: kubeadm(COREFILE, replaced("Corefile", "cache 30", "cache 3000")),
        ("ConfigMap kube-system/coredns: Corefile", "cache 3000"),
    ),
    Row(
        "CoreDNS' image", lambda: kubeadm(DNS, _image), ("Deployment kube-system/coredns", "v1.10")
    ),
    Row("CoreDNS is gone", lambda: kubeadm(DNS), ("Deployment kube-system/coredns deleted",)),
    Row("the Service of DNS is gone", lambda: kubeadm(DNS_SERVICE), ("kube-dns deleted",)),
    Row(
        "the binding that renews kubelets' certificates is gone",
        lambda: kubeadm(ROTATION),
        ("kubeadm:node-autoapprove-certificate-rotation deleted",),
    ),
    Row("a role of kubeadm's", lambda: kubeadm(NODES, _other_role), ("kubeadm:get-nodes", "rules")),
)
RELEASE_ROWS = (
    Row("flannel's variables", lambda: released("flannel env"), ("FLANNELD_IFACE", "eth9")),
    Row("the device plugin's", lambda: released("device plugin env"), ("DEVICE_SPLIT",)),
    Row("node-exporter's selector", lambda: released("node selector"), ("nodeSelector", "gpu1")),
    Row("a paused Prometheus", lambda: released("paused"), ("spec.paused", "True")),
    Row("a monitor is gone", lambda: kept_by_helm(MONITOR), ("ServiceMonitor", "deleted")),
    Row(
        "an operator without pods",
        lambda: kept_by_helm(OPERATOR, replicas=0),
        ("Deployment gpu-operator/gpu-operator", "spec.replicas"),
    ),
    Row(
        "a monitor that asks seldom",
        lambda: kept_by_helm(MONITOR, endpoints=[{"interval": "1h"}]),
        ("interval", "1h"),
    ),
    Row(
        "a monitor that drops what it gets",
        lambda: by_another(
            MONITOR, "endpoints", [{"interval": "15s", "metricRelabelings": [{"action": "drop"}]}]
        ),
        ("spec.endpoints[0].metricRelabelings", "drop"),
    ),
    Row("a dashboard is gone", lambda: board(None), ("ConfigMap monitoring/gpu",)),
    Row(
        "a dashboard of somebody's", lambda: board({"a.json": "{}"}), ("ConfigMap monitoring/gpu",)
    ),
    Row("another flag in kubeadm's file", lambda: flags("--max-pods=20"), ("--max-pods=20",)),
)
PROOF_ROWS = (
    Row(
        "one of three nodes is not measured",
        lambda: measured("cp1", "gpu1"),
        ("nodes gpu2: Prometheus has no target node-exporter of it", "node selector"),
    ),
)
OBJECT_ROWS = (*KUBEADM_ROWS, *RELEASE_ROWS, *PROOF_ROWS)
