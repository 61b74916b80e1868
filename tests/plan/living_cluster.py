"""The cluster that a run with the default settings has made, as its API server tells it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from gpuboot.cluster import cluster_answers as api
from gpuboot.cluster import flannel, kubeadm, local_path, managed_objects, manifests, volumes
from gpuboot.cluster.helm_releases import Release, release_path
from gpuboot.cluster.kubeadm import Configuration
from gpuboot.cluster.release_objects import release_objects
from gpuboot.cluster.switched_off_parts import contents_paths
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.config.versions import Lock
from gpuboot.monitoring import alerting
from gpuboot.monitoring import objects as monitoring
from gpuboot.monitoring.charts import log_values, remote_write
from gpuboot.monitoring.charts.exporter import GPUS_LABEL
from gpuboot.monitoring.charts.gpu_operator_values import operands, operator_values
from gpuboot.monitoring.charts.monitoring_values import monitoring_values, monitoring_workloads
from gpuboot.monitoring.charts.operator_daemonsets import expected_operands
from tests.cluster_answers import (
    cluster,
    item_list,
    lease,
    make_object,
    packed,
    packed_managed,
    releases,
    revision,
)
from tests.plan.living_objects import metrics_of

_NAMESPACES = ("monitoring", "gpu-operator")
LOG_RELEASES = (log_values.EVENTS, log_values.NODES)
# of each release something that the API server keeps as it is given
_MANIFESTS = {
    ("kube-prometheus-stack", "monitoring"): yaml.safe_dump_all(
        [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "kube-prometheus-stack-prometheus", "namespace": "monitoring"},
                "spec": {"ports": [{"name": "http-web", "port": 9090}]},
            },
            {
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": "Prometheus",
                "metadata": {"name": "kube-prometheus-stack-prometheus"},
                "spec": {"replicas": 1, "retention": "10d"},
            },
        ]
    ),
    ("gpu-operator", "gpu-operator"): "{apiVersion: apps/v1, kind: Deployment, "
    "metadata: {name: gpu-operator}, spec: {replicas: 1}}",
}


def _bent(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects after somebody has been at work by hand."""
    service, prometheus, operator, dashboard, *remaining = objects
    assert (service["kind"], dashboard["kind"]) == ("Service", "ConfigMap")
    return [
        {**prometheus, "spec": {**prometheus["spec"], "retention": "1d"}},
        {**operator, "spec": {"replicas": 0}},
        {**dashboard, "data": {**dashboard["data"], "mine.json": "{}"}},
        *remaining[1:],
    ]


def _daemonset(name: str, namespace: str, pods: int = 2, **extra: Any) -> dict[str, Any]:
    counts = ("desiredNumberScheduled", "updatedNumberScheduled", "numberReady")
    return make_object(name, namespace, status=dict.fromkeys(counts, pods), **extra)


def _deployment(name: str, namespace: str, **extra: Any) -> dict[str, Any]:
    status = {"updatedReplicas": 1, "readyReplicas": 1}
    return make_object(name, namespace, spec={"replicas": 1}, status=status, **extra)


def _marked(manifest: str) -> dict[str, str]:
    return {manifests.DIGEST: manifests.with_digest(manifest)[1]}


@dataclass(frozen=True)
class LivingCluster:
    """Of a control plane and a worker of two GPUs; + config: kubeadm's; release: what it runs"""

    settings: Settings
    lock: Lock
    nodes: Sequence[Node]
    config: Configuration
    release: str

    def answers(self) -> dict[str | re.Pattern[str], list[str]]:
        """What the facts about it print, by a part of their commands."""
        return {
            api.KUBEADM: self._cluster(),
            managed_objects.PATHS["ConfigMap"]: self._managed(),
            volumes.PATHS[1]: _volumes(),
            "/replicasets": packed(dict.fromkeys(contents_paths(""), item_list())),
            **self._releases(),
            "Digests of the values of Secrets": _secrets(),
        }

    def _operand(self, name: str, pods: int) -> dict[str, Any]:
        """A DaemonSet as the GPU Operator makes it of the default values."""
        expected = expected_operands(self.settings, self.lock).get(name)
        if expected is None:
            return _daemonset(name, "gpu-operator", pods)
        container = {
            "name": expected.container,
            "image": f"image{expected.version}",
            "env": [
                {"name": key, "value": text}
                for key, text in expected.env.items()
                if text is not None
            ],
            "resources": expected.resources,
            "args": expected.args or [],
        }
        manager = {
            "name": "config-manager",
            "env": [{"name": "DEFAULT_CONFIG", "value": expected.config or ""}],
        }
        spec = {
            "containers": [container, manager],
            "tolerations": expected.tolerations,
            "hostNetwork": bool(expected.host_network),
        }
        template = {"metadata": {"annotations": expected.annotations}, "spec": spec}
        labels = {"helm.sh/chart": expected.chart}
        return _daemonset(name, "gpu-operator", pods, labels=labels, spec={"template": template})

    def _workloads(self) -> dict[str, Any]:
        api_server = kubeadm.endpoint(self.settings.cluster, self.nodes)
        return {
            api.WORKLOADS["DaemonSet"]: item_list(
                _daemonset(
                    "kube-flannel-ds",
                    "kube-flannel",
                    annotations=_marked(
                        flannel.manifest(
                            self.settings,
                            self.lock,
                            api_server,
                            kubeadm.way_to_api(self.settings.cluster, self.nodes),
                        )
                    ),
                ),
                _daemonset("kube-proxy", "kube-system"),
                *(
                    self._operand(name, pods)
                    for name, pods in operands(self.settings, self.lock, 1).items()
                ),
            ),
            api.WORKLOADS["Deployment"]: item_list(
                _deployment(
                    local_path.PROVISIONER,
                    local_path.NAMESPACE,
                    annotations=_marked(local_path.local_path(self.settings, self.lock)),
                ),
                _deployment("coredns", "kube-system"),
                *self._metrics(),
                *(_deployment(name, "monitoring") for name in monitoring_workloads(self.settings)),
            ),
        }

    def _metrics(self) -> list[dict[str, Any]]:
        """metrics-server and its approver; those of $PLAN_FOREIGN are somebody else's."""
        items = metrics_of(self.settings, self.lock, self.nodes).items()
        foreign = os.environ.get("PLAN_FOREIGN", "").split()
        marks = {name: {} if name in foreign else _marked(manifest) for name, manifest in items}
        return [_deployment(name, "kube-system", annotations=mark) for name, mark in marks.items()]

    def _node(self, name: str, address: str) -> dict[str, Any]:
        taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
        labels = (
            {}
            if (leads := name == "cp1")
            else {"node-role.kubernetes.io/worker": "", GPUS_LABEL: "2"}
        )
        return make_object(
            name,
            labels=labels,
            annotations={"gpuboot.io/labels": ",".join(sorted(labels))} if labels else {},
            spec={"taints": [taint] if leads else []},
            status={
                "addresses": [{"type": "InternalIP", "address": address}],
                "nodeInfo": {"kubeletVersion": f"v{self.release}"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "allocatable": {} if leads else {"nvidia.com/gpu": "2"},
            },
        )

    def _cluster(self) -> list[str]:
        privileged = {"pod-security.kubernetes.io/enforce": "privileged"}
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        answers = cluster(
            yaml.safe_dump(self._record()),
            VERSION={"gitVersion": f"v{self.release}"},
            NODES=item_list(*(self._node(node.name, node.address) for node in self.nodes)),
            LEASES=item_list(*(lease(node.name) for node in self.nodes)),
            NAMESPACES=item_list(*(make_object(name, labels=privileged) for name in _NAMESPACES)),
            CLASSES=item_list(make_object(local_path.STORAGE_CLASS, annotations=default)),
            POLICIES=item_list(make_object("cluster-policy", status={"state": "ready"})),
        )
        answers[api.KUBEADM]["metadata"]["annotations"] = {manifests.DIGEST: self.config.digest}
        return packed({**answers, **self._workloads()})

    def _record(self) -> dict[str, Any]:
        parts = {item["kind"]: item for item in yaml.safe_load_all(self.config.text)}
        return {**parts["ClusterConfiguration"], "kubernetesVersion": f"v{self.release}"}

    def _managed(self) -> list[str]:
        """What the releases' manifests hold, and our own objects."""
        released = [
            item
            for name, namespace in _MANIFESTS
            for item in release_objects(
                Release(manifest=_MANIFESTS[name, namespace]), name, namespace
            )
        ]
        gpuboot_objects = map(manifests.as_owned, monitoring.objects(self.settings, self.nodes))
        objects = [*released, *gpuboot_objects]
        return packed_managed(*(_bent(objects) if os.environ.get("PLAN_BENT") else objects))

    def _wanted_releases(self) -> dict[tuple[str, str], dict[str, Any] | None]:
        return {
            ("kube-prometheus-stack", "monitoring"): monitoring_values(self.settings),
            ("gpu-operator", "gpu-operator"): operator_values(self.settings, self.lock),
            ("dcgm-exporter", "dcgm-exporter"): None,
            # the longer name first: it holds the other one
            **{(name, "monitoring"): _shipped().get(name) for name in LOG_RELEASES},
        }

    def _releases(self) -> dict[str | re.Pattern[str], list[str]]:
        """What Helm has deployed: of all releases together, and of each by itself."""
        release_secrets = {
            release_path(name, namespace): None
            if values is None
            else revision(
                chart := log_values.CHART if name in LOG_RELEASES else name,
                self.lock.charts[chart].version,
                "deployed",
                1,
                values,
                _MANIFESTS.get((name, namespace), ""),
            )
            for (name, namespace), values in self._wanted_releases().items()
        }
        names = [name for name, _ in self._wanted_releases()]
        every = re.compile(r"name%3D[\s\S]*name%3D")
        return {
            every: releases(release_secrets),
            **{
                f"name%3D{name}": releases({path: text})
                for name, (path, text) in zip(names, release_secrets.items(), strict=True)
            },
        }


def _shipped() -> Mapping[str, dict[str, Any]]:
    """Releases that ship logs, where $PLAN_LOGS asks for them."""
    log_settings = {
        "enabled": bool(os.environ.get("PLAN_LOGS")),
        "loki": {"url": "https://l.example.org"},
    }
    return log_values.releases(parse_settings({"logs": log_settings}))


def _volumes() -> list[str]:
    """Prometheus' volume, where $PLAN_VOLUME asks for one."""
    claim = {"namespace": "monitoring", "name": "prometheus"}
    spec = {"storageClassName": local_path.STORAGE_CLASS, "claimRef": claim}
    volume = [make_object("pvc-1", spec=spec)] if os.environ.get("PLAN_VOLUME") else []
    return packed(dict(zip(volumes.PATHS, [item_list(), item_list(*volume)], strict=True)))


def _secrets() -> list[str]:
    """Grafana's password is there, and no other Secret."""
    names = ("gpuboot-grafana-admin", alerting.SECRET, remote_write.SECRET, log_values.SECRET)
    paths = [f"/api/v1/namespaces/monitoring/secrets/{name}?pretty=true" for name in names]
    return [
        *(f"asked\t{path}" for path in paths),
        "status\t0 200",
        f"digest\t0 admin-password {hashlib.sha256(b'x').hexdigest()}",
        *("status\t1 404", "status\t2 404", "status\t3 404"),
        "end\tok",
    ]
