"""A cluster behind the two calls the prover makes of it (`get`, `core`): it schedules pods on
GPUs, runs them, and its exporters and Prometheus tell what holds what."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from gpuboot.config.settings import Exporter
from gpuboot.kubernetes.api import ClusterError
from gpuboot.telemetry.collectors import collectors_annotation
from gpuboot.verify.heartbeat import LEASES
from gpuboot.verify.lease import PATH as LEASE_PATH
from gpuboot.verify.service_probe import SERVICE
from tests.unit.evidence import SIZES, uuid

VALUES = {
    "DCGM_FI_DEV_GPU_TEMP": 34,
    "DCGM_FI_DEV_POWER_USAGE": 71.4,
    "DCGM_FI_DEV_FB_USED": 4,
    "DCGM_FI_DEV_FB_FREE": 81000,
    "DCGM_FI_DEV_MEMORY_TEMP": 9223372036854775794,  # DCGM's "not supported"
}


@dataclass
class FakeCluster:
    """+ holders: GPU (node, index) -> `namespace/pod` of somebody else
    + namespaces: verifications' own -> phase; those being deleted are gone at the next look
    + lease: of the verification that holds the lock
    + pods, placed: by name; all of them are in the newest namespace
    + stale: GPU -> a name its series give for the next `stale_reads` answers
    + annotations: of the exporters' pods
    + services: node -> what its pod says of Services
    + stopped: node -> time at which its kubelet stopped
    + faults: GPU -> log of the pod that gets it, in place of vectorAdd's
    """

    gpu_holders: dict[tuple[str, int], str] = field(default_factory=dict)
    cordoned: set[str] = field(default_factory=set)
    stale: dict[tuple[str, int], str] = field(default_factory=dict)
    stale_reads: int = 0
    faults: dict[tuple[str, int], str] = field(default_factory=dict)
    attribute: bool = True
    services: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, float] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=lambda: collectors_annotation(Exporter()))
    namespaces: dict[str, str] = field(default_factory=dict)
    lease: dict[str, Any] | None = None
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    placed: dict[str, tuple[str, int]] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    energy: int = 0

    @property
    def core(self) -> Any:
        return SimpleNamespace(
            create_namespace=self._create_namespace,
            create_namespaced_pod=self._create_pod,
            delete_collection_namespaced_pod=self._delete_pods,
            delete_namespace=self._delete_namespace,
        )

    @property
    def leases(self) -> Any:
        return SimpleNamespace(
            create_namespaced_lease=self._create_lease,
            replace_namespaced_lease=self._replace_lease,
            delete_namespaced_lease=self._delete_lease,
        )

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
        if path == "/api/v1/pods" and query:
            return {"items": self._exporters() if query["labelSelector"].startswith("app=") else []}
        if path == "/api/v1/pods":
            return {"items": [self._holder(*key) for key in self.gpu_holders]}
        if path == "/api/v1/namespaces":
            return {"items": self._namespaces()}
        if path.startswith("/api/v1/namespaces/gpuboot-verify-"):
            name, *rest = path.split("/")[4:]
            if rest == ["pods"]:
                return {"items": list(self.pods.values()) if name == self._newest else []}
            return self._log(rest[1])
        if path.startswith("/pod/"):
            return self._metrics(path.split("-")[-1].split(":")[0])
        return self._prometheus(path, query)

    def _node(self, name: str, count: int) -> dict[str, Any]:
        return {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"unschedulable": True} if name in self.cordoned else {},
            "status": {
                "allocatable": {"nvidia.com/gpu": str(count)},
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
        ours = {gpu: name for name, gpu in self.placed.items()}
        if (node, index) in ours and self.attribute:
            return f"{self._newest}/{ours[node, index]}"
        return self.gpu_holders.get((node, index), "")

    def _labels(self, node: str, index: int) -> dict[str, str]:
        owner = self._owner(node, index)
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
        if path.endswith("/query"):
            data = {
                "result": [
                    {
                        "metric": self._labels(node, index) | {"node": node},
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
        found = [
            {"metadata": {"name": name}, "status": {"phase": phase}}
            for name, phase in self.namespaces.items()
        ]
        for name, phase in list(self.namespaces.items()):
            if phase == "Terminating":
                del self.namespaces[name]
        return found

    def _create_lease(self, namespace: str, body: dict[str, Any]) -> None:
        self.lease = body

    def _replace_lease(self, name: str, namespace: str, body: dict[str, Any]) -> None:
        self.lease = body

    def _delete_lease(self, name: str, namespace: str) -> None:
        self.lease = None

    def _create_namespace(self, body: Any) -> None:
        self.namespaces[body["metadata"]["name"]] = "Active"

    def _create_pod(self, namespace: str, body: dict[str, Any]) -> None:
        name, node = (
            body["metadata"]["name"],
            body["spec"]["nodeSelector"]["kubernetes.io/hostname"],
        )
        if "resources" not in body["spec"]["containers"][0]:
            phase = "Pending" if node in self.stopped else "Succeeded"
            bound = {**body["spec"], "nodeName": node}
            self.pods[name] = {**body, "spec": bound, "status": {"phase": phase}}
            return
        self.created.append(body)
        taken = {*self.placed.values(), *self.gpu_holders}
        free = [(node, i) for i in range(SIZES[node]) if (node, i) not in taken]
        pod = {"metadata": body["metadata"], "spec": dict(body["spec"]), "status": {}}
        self.pods[name] = pod
        if free and node not in self.cordoned:
            self.placed[name] = free[0]
            pod["spec"]["nodeName"] = node
            broken = free[0] in self.faults
            if node in self.stopped:
                pod["status"] = {"phase": "Pending"}  # and nobody on the node takes it up
                return
            pod["status"] = {"phase": "Failed" if broken else "Running"}
        else:
            message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
            condition = {"type": "PodScheduled", "status": "False", "message": message}
            pod["status"] = {"phase": "Pending", "conditions": [condition]}

    def _log(self, name: str) -> str:
        if self.pods[name]["status"]["phase"] == "Pending":
            raise ClusterError("container vectoradd is waiting to start", 400)
        if name not in self.placed:
            said = self.services.get(name.removeprefix("services-"), "resolved connected")
            return "".join(f"gpuboot-services: {word}\n" for word in said.split())
        node, index = self.placed[name]
        listed = f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuid(node, index)})\n"
        text = "[Vector addition of 50000 elements]\nTest PASSED\nDone\n"
        return listed + self.faults.get((node, index), text)

    def _delete_pods(self, namespace: str, grace_period_seconds: int) -> None:
        assert namespace in self.namespaces
        self.pods.clear()
        self.placed.clear()

    def _delete_namespace(self, namespace: str) -> None:
        self.namespaces[namespace] = "Terminating"
