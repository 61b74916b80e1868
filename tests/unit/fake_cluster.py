"""A cluster behind the calls that a verification makes of it (`get`, `send`, `lines`): its
exporters and Prometheus tell what holds what."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.node_reports import LEASES
from gpuboot.config.settings import Exporter
from gpuboot.telemetry.collectors import collectors_annotation
from gpuboot.verify.lease import PATH as LEASE_PATH
from gpuboot.verify.service_probe import SERVICE
from tests.unit.evidence import SIZES, uuid
from tests.unit.fake_pods import FakePods

VALUES = {
    "DCGM_FI_DEV_GPU_TEMP": 34,
    "DCGM_FI_DEV_POWER_USAGE": 71.4,
    "DCGM_FI_DEV_FB_USED": 4,
    "DCGM_FI_DEV_FB_FREE": 81000,
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0,
    "DCGM_FI_DEV_MEMORY_TEMP": 9223372036854775794,  # DCGM's "not supported"
}


@dataclass
class FakeCluster(FakePods):
    """+ namespaces: verifications' own -> phase; those being deleted are gone at the next look
    + lease: of the verification that holds the lock
    + stale: GPU -> a name its series give for the next `stale_reads` answers
    + annotations: of the exporters' pods
    + stored: GPU -> when Prometheus last stored a name of an earlier verification's pod
    + not_offered: node -> how many of its GPUs are not allocatable
    + labels: of every node, beside its name
    + without_plugin: nodes to which no device plugin has come yet
    """

    stale: dict[tuple[str, int], str] = field(default_factory=dict)
    stale_reads: int = 0
    attribute: bool = True
    annotations: dict[str, str] = field(default_factory=lambda: collectors_annotation(Exporter()))
    namespaces: dict[str, str] = field(default_factory=dict)
    lease: dict[str, Any] | None = None
    stored: dict[tuple[str, int], float] = field(default_factory=dict)
    energy: int = 0
    not_offered: dict[str, int] = field(default_factory=dict)
    without_plugin: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        namespace, _, name = path.removeprefix("/api/v1/namespaces/").partition("/pods")
        if path.startswith("/apis/coordination"):
            return self._change_lease(method, body)
        if method == "POST" and "/pods" in path:
            body["metadata"]["namespace"] = namespace
        if method == "POST":
            return self._create_pod(body) if "/pods" in path else self._create_namespace(body)
        assert method == "DELETE"
        if "/pods" not in path:
            self.namespaces[namespace] = "Terminating"
            return {}
        assert namespace in self.namespaces
        assert name or body == {"gracePeriodSeconds": 0}
        for pod_name in [name.strip("/")] if name else list(self.pods):
            self.pods.pop(pod_name, None)
            self.placed = {gpu: at for gpu, at in self.placed.items() if at[0] != pod_name}
        return {}

    @contextmanager
    def lines(
        self, path: str, query: Mapping[str, str], idle_s: float
    ) -> Iterator[Iterable[bytes]]:
        yield self.get(path, query).splitlines()

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.monotonic(), UTC)

    def service(self, namespace: str, name: str, port: int | str) -> str:
        return f"/svc/{namespace}/{name}:{port}"

    def pod(self, namespace: str, name: str, port: int) -> str:
        return f"/pod/{namespace}/{name}:{port}"

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        return json.loads(self.get(path, query))

    def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        answer = self._answer(unquote(path), dict(query or {}))
        return answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()

    def _answer(self, path: str, query: dict[str, str]) -> Any:
        if path == SERVICE:
            return {"spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443}]}}
        if path == LEASE_PATH:
            if self.lease is None:
                raise ClusterError("leases not found", 404)
            return self.lease
        if path == LEASES:
            return {"items": [self._lease(name) for name in SIZES]}
        if path == "/api/v1/nodes":
            return {"items": [self._node(name, count) for name, count in SIZES.items()]}
        if path.startswith("/api/v1/nodes/"):
            name = path.rpartition("/")[2]
            return self._node(name, SIZES[name])
        if node := query.get("fieldSelector", "").removeprefix("spec.nodeName="):
            return {"items": [self._holder(*key) for key in self.gpu_holders if key[0] == node]}
        if path == "/api/v1/pods" and query:
            return {"items": self._exporters() if query["labelSelector"].startswith("app=") else []}
        if path == "/api/v1/pods":
            return {"items": [self._holder(*key) for key in self.gpu_holders]}
        if path == "/api/v1/namespaces":
            return {"items": self._namespaces()}
        if path.startswith("/api/v1/namespaces/gpuboot-verify-"):
            return self._of_namespace(path, query)
        if path.startswith("/apis/monitoring.coreos.com/"):
            return {"kind": "PrometheusList", "items": []}
        if path.endswith("/api/v2/alerts"):
            return [{"labels": {"alertname": "Watchdog"}, "status": {"silencedBy": []}}]
        if path.endswith("/api/v2/silences"):
            return []
        if "alertmanager_" in query.get("query", ""):
            return {"status": "success", "data": {"result": []}}  # no receiver refuses messages
        if path.startswith("/pod/"):
            return self._metrics(path.split("-")[-1].split(":")[0])
        return self._prometheus(path, query)

    def _of_namespace(self, path: str, query: dict[str, str]) -> Any:
        """What is asked of a verification's namespace: its pods, events, or a pod's log."""
        name, *remaining = path.split("/")[4:]
        if remaining == ["events"]:
            return {"items": []}
        if remaining != ["pods"]:
            return self._log(remaining[1], query["container"])
        return {"items": list(self.pods.values()) if name == self._newest else []}

    def _node(self, name: str, count: int) -> dict[str, Any]:
        return {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **self.labels}},
            "spec": {"unschedulable": True} if name in self.cordoned else {},
            "status": {
                "allocatable": {"nvidia.com/gpu": str(count - self.not_offered.get(name, 0))},
                "capacity": {} if name in self.without_plugin else {"nvidia.com/gpu": str(count)},
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1.36.3"},
            },
        }

    def _lease(self, node: str) -> dict[str, Any]:
        now = min(time.monotonic(), self.stopped.get(node, math.inf))
        renewed = datetime.fromtimestamp(now - now % 10, UTC).isoformat(timespec="microseconds")
        return {
            "metadata": {"name": node},
            "spec": {"renewTime": renewed.replace("+00:00", "Z"), "leaseDurationSeconds": 40},
        }

    def _exporters(self) -> list[dict[str, Any]]:
        return [
            {
                "metadata": {
                    "name": f"exporter-{name}",
                    "namespace": "gpu-operator",
                    "uid": name,
                    "annotations": self.annotations,
                },
                "spec": {"nodeName": name},
                "status": {"phase": "Running"},
            }
            for name in SIZES
        ]

    def _holder(self, node: str, index: int) -> dict[str, Any]:
        namespace, name = self.gpu_holders[node, index].split("/")
        return {
            "metadata": {"namespace": namespace, "name": name},
            "spec": {
                "nodeName": node,
                "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
            },
            "status": {"phase": "Running"},
        }

    def _owner(self, node: str, index: int) -> str:
        if self.stale_reads > 0 and (node, index) in self.stale:
            return self.stale[node, index]
        if (node, index) in self.placed and self.attribute:
            return f"{self._newest}/{self.placed[node, index][0]}"
        return self.gpu_holders.get((node, index), "")

    def _stored(self, node: str, index: int) -> dict[str, Any]:
        labels = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "UUID": uuid(node, index)}
        return {"metric": labels, "values": [[self.stored[node, index], "34"]]}

    def _labels(self, node: str, index: int, stored: bool = False) -> dict[str, str]:
        """+ stored: in Prometheus, which has not asked since there are our pods"""
        owner = "" if stored and self.stored else self._owner(node, index)
        pod = dict(zip(("namespace", "pod"), owner.split("/"), strict=True)) if owner else {}
        return {"UUID": uuid(node, index), "gpu": str(index), "modelName": 'H"100'} | pod

    def _metrics(self, node: str) -> str:
        self.energy += 500
        lines = ["# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature", ""]
        for index in range(SIZES[node]):
            labels = ",".join(
                f'{key}="{value.replace(chr(34), chr(92) + chr(34))}"'
                for key, value in self._labels(node, index).items()
            )
            values = VALUES | {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": self.energy}
            lines += [f"{name}{{{labels}}} {value}" for name, value in values.items()]
        return "\n".join(lines) + "\n"

    def _prometheus(self, path: str, query: dict[str, str]) -> Any:
        data: Any
        if path.endswith("/-/ready"):
            return "OK"
        if path.endswith("/runtimeinfo"):
            data = {"lastConfigTime": "2026-11-22T12:00:00Z"}
        elif path.endswith("/query") and query["query"].endswith("]"):
            data = {"resultType": "matrix", "result": [self._stored(*gpu) for gpu in self.stored]}
        elif path.endswith("/query"):
            data = {
                "result": [
                    {
                        "metric": self._labels(node, index, stored=True) | {"node": node},
                        "value": [1000.0, "997.5"],
                    }
                    for node, count in SIZES.items()
                    for index in range(count)
                ]
            }
            self.stale_reads -= 1
        elif path.endswith("/targets"):
            labels = [{"job": "nvidia-dcgm-exporter", "node": name} for name in SIZES]
            data = {"activeTargets": [{"labels": item, "health": "up"} for item in labels]}
        elif path.endswith("/alerts"):
            labels = [{"alertname": "GPUMemoryHot", "severity": "warning", "UUID": uuid("gpu1", 0)}]
            data = {"alerts": [{"labels": item, "state": "firing"} for item in labels]}
        elif path.endswith("/rules"):
            data = {"groups": [{"rules": [{"name": "GPULost", "health": "ok"}]}]}
        else:
            data = {"activeAlertmanagers": [{"url": "http://10.244.1.9:9093/api/v2/alerts"}]}
        return {"status": "success", "data": data}

    @property
    def _newest(self) -> str:
        return next(reversed(self.namespaces), "")

    def _namespaces(self) -> list[dict[str, Any]]:
        items = [
            {"metadata": {"name": name}, "status": {"phase": phase}}
            for name, phase in self.namespaces.items()
        ]
        for name, phase in list(self.namespaces.items()):
            if phase == "Terminating":
                del self.namespaces[name]
        return items

    def _change_lease(self, method: str, body: dict[str, Any] | None) -> dict[str, Any]:
        if method == "POST" and self.lease is not None:
            raise ClusterError("leases already exists", 409)
        self.lease = body
        return body or {}

    def _create_namespace(self, body: Any) -> dict[str, Any]:
        self.namespaces[body["metadata"]["name"]] = "Active"
        return dict(body)
