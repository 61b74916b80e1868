"""Pods of a cluster that does not exist: scheduled on its GPUs, run, and with logs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuboot.cluster.api import ClusterError
from gpuboot.verify.pod_results import TELLS_BY_MESSAGE
from tests.unit.evidence import SIZES, uuid

PASSED = "[Vector addition of 50000 elements]\nTest PASSED\nDone\n"


def vectoradd_lines(runs: Mapping[str, str]) -> list[str]:
    """What a container's script prints. + runs: UUID -> what vectorAdd says there"""
    return [
        f"{device}: {line}"
        for device, text in runs.items()
        for line in (*text.splitlines(), f"exit {int('PASSED' not in text)}")
    ]


@dataclass
class FakePods:
    """+ gpu_holders: GPU (node, index) -> `namespace/pod` of somebody else
    + pods: by name; all of them are in the newest namespace
    + placed: GPU -> pod and container that hold it
    + services: node -> what its pod says of Services; outside: of a name beyond the cluster
    + stopped: node -> time at which its kubelet stopped
    + created, created_names: pods with GPUs, and the names of all
    + faults: GPU -> what vectorAdd prints on it, and fails
    + unstartable: GPUs that keep a container from being created
    + unlisted: GPUs that make nvidia-smi fail in their container
    + leaky: nodes whose containers see all GPUs
    + exposed: node -> value of NVIDIA_VISIBLE_DEVICES, `mounted` or `void` by which a container
      sees its first GPU without a request
    + rejected: words of a pod's manifest for which admission refuses it
    """

    gpu_holders: dict[tuple[str, int], str] = field(default_factory=dict)
    cordoned: set[str] = field(default_factory=set)
    faults: dict[tuple[str, int], str] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, float] = field(default_factory=dict)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    placed: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    unstartable: set[tuple[str, int]] = field(default_factory=set)
    unlisted: set[tuple[str, int]] = field(default_factory=set)
    leaky: set[str] = field(default_factory=set)
    exposed: dict[str, str] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()
    created: list[dict[str, Any]] = field(default_factory=list)
    created_names: list[str] = field(default_factory=list)

    def _create_pod(self, body: dict[str, Any]) -> dict[str, Any]:
        name, spec = body["metadata"]["name"], dict(body["spec"])
        if word := next((word for word in self.rejected if word in json.dumps(body)), ""):
            raise ClusterError(f'pods "{name}" is forbidden: {word}', 403)
        node = spec["nodeSelector"]["kubernetes.io/hostname"]
        pod = {"metadata": body["metadata"], "spec": spec, "status": {}}
        self.pods[name] = pod
        self.created_names.append(name)
        requests = {
            part["name"]: int(part["resources"]["limits"]["nvidia.com/gpu"])
            for part in spec["containers"]
            if "resources" in part
        }
        if requests:
            self.created.append(body)
        occupied = {*self.placed, *self.gpu_holders}
        free = [(node, i) for i in range(SIZES.get(node, 0)) if (node, i) not in occupied]
        past_scheduler = spec.get("nodeName") == node
        cordoned = node in self.cordoned and not past_scheduler
        if sum(requests.values()) > len(free) or cordoned:
            message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
            condition = {"type": "PodScheduled", "status": "False", "message": message}
            pod["status"] = {"phase": "Pending", "conditions": [condition]}
            return pod
        for container, count in requests.items():
            self.placed |= {free.pop(0): (name, container) for _ in range(count)}
        spec["nodeName"] = node
        pod["status"] = self._status(pod, node)
        return pod

    def _status(self, pod: dict[str, Any], node: str) -> dict[str, Any]:
        if node in self.stopped:
            return {"phase": "Pending"}  # and nobody on the node takes it up
        states = []
        for container in pod["spec"]["containers"]:
            devices = self._held_devices(pod["metadata"]["name"], container["name"])
            state: dict[str, Any] = {"running": {}} if devices else {"terminated": {"exitCode": 0}}
            if self.unlisted & set(devices):
                state = {"terminated": {"exitCode": 15, "reason": "Error"}}
            if self.unstartable & set(devices):
                state = {"waiting": {"reason": "CreateContainerError", "message": "no device"}}
            if container.get("terminationMessagePolicy") == TELLS_BY_MESSAGE:
                state["terminated"]["message"] = self._message(container, node)
            states.append({"name": container["name"], "state": state})
        state_names = {word for item in states for word in item["state"]}
        phase = (
            "Pending"
            if "waiting" in state_names
            else "Running"
            if "running" in state_names
            else "Succeeded"
        )
        return {"phase": phase, "containerStatuses": states}

    def _message(self, container: dict[str, Any], node: str) -> str:
        [value] = [e["value"] for e in container["env"] if e["name"] == "NVIDIA_VISIBLE_DEVICES"]
        requested = "mounted" if "volumeMounts" in container else value
        return (
            "devices: /dev/nvidia0 /dev/nvidiactl"
            if self.exposed.get(node) == requested
            else "devices:"
        )

    def _held_devices(self, pod: str, container: str) -> list[tuple[str, int]]:
        return [gpu for gpu, at in self.placed.items() if at == (pod, container)]

    def _log(self, name: str, container: str) -> str:
        pod = self.pods[name]
        if pod["status"]["phase"] == "Pending":
            raise ClusterError(f"container {container} is waiting to start", 400)
        node = pod["spec"]["nodeName"]
        [part] = [item for item in pod["spec"]["containers"] if item["name"] == container]
        assert part.get("terminationMessagePolicy") != TELLS_BY_MESSAGE, "nobody reads that log"
        log = ""
        if "gpuboot-services" in part["command"][2]:
            words = self.services.get(node, "resolved connected")
            log += "".join(f"gpuboot-services: {word}\n" for word in words.split())
            log += f"gpuboot-services: outside {self.outside.get(node, 'resolved')}\n"
        return log + (self._gpu_log(name, container) if "resources" in part else "")

    def _gpu_log(self, pod: str, container: str) -> str:
        devices = self._held_devices(pod, container)
        if self.unlisted & set(devices):
            return "Unable to determine the device handle: GPU is lost\n"
        node = devices[0][0]
        visible = [(node, i) for i in range(SIZES[node])] if node in self.leaky else devices
        lines = [
            f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: {uuid(*gpu)})"
            for index, gpu in enumerate(visible)
        ]
        runs = {uuid(*gpu): self.faults.get(gpu, PASSED) for gpu in visible}
        return "\n".join([*lines, *vectoradd_lines(runs)]) + "\n"
