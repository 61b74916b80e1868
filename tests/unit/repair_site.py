"""A cluster whose GPUs break, for repairs: its API, its Prometheus, and what is done on nodes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.objects import parse_node
from gpuboot.cluster.repair_keys import TAINT_KEY
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.repair.controller import Controller, UndecidedError
from gpuboot.repair.decide import decide
from gpuboot.repair.observe import NODES, gpu_node, observe
from gpuboot.repair.repair_model import GpuNode, Repair
from gpuboot.repair.writing import EVENTS

START = 1_763_800_000.0
XID_79 = {"alertname": "GPUXidFatal", "xid": "79"}
XID_119 = {"alertname": "GPUXidFatal", "xid": "119"}
GPU_LOST = {"alertname": "GPULost"}
HEALTH = {"alertname": "GPUHealthFail", "health_watch": "MEM"}
REMAP = {"alertname": "GPURowRemapFailure"}
RECOVERY_RESET = {"alertname": "GPURecoveryAction", "gpu_action": "reset"}
RECOVERY_REBOOT = {"alertname": "GPURecoveryAction", "gpu_action": "reboot"}
HOT = {"alertname": "GPUThermalThrottle"}


class KilledError(BaseException):
    """kill -9."""


def uuid(node: str) -> str:
    return f"GPU-{node}"


@dataclass
class Site:
    """+ faults: node -> labels of alerts that fire for its GPU

    + cure: what takes the faults of a node away: `reset`, `reboot` or `never`
    + blocked: nodes whose pods may not be evicted
    + undecided: jobs that come to no verdict; refusal: why nothing may be done to nodes
    + lives: how many changes and jobs until the controller is killed; None: it is not
    + writes: (method, path) of all that was changed; did: (job, node)
    """

    settings: Settings = field(default_factory=lambda: site_settings())
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    cure: dict[str, str] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    undecided: set[str] = field(default_factory=set)
    refusal: str = ""
    maps: dict[str, dict[str, str]] = field(default_factory=dict)
    leases: dict[str, dict[str, Any]] = field(default_factory=dict)
    clock: float = START
    scrape_age: float = 5.0
    rules_age: float = 5.0
    lives: int | None = None
    writes: list[tuple[str, str]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    did: list[tuple[str, str]] = field(default_factory=list)
    log_entries: list[dict[str, Any]] = field(default_factory=list)

    def add(self, name: str, gpus: int = 4, **extra: Any) -> Site:
        self.nodes[name] = {
            "metadata": {
                "name": name,
                "resourceVersion": "1",
                "labels": {"gpuboot.io/gpus": str(gpus), "nvidia.com/gpu.product": "H100"},
            },
            "spec": {},
            "status": {
                "capacity": {"cpu": "8", "nvidia.com/gpu": str(gpus)},
                "allocatable": {"cpu": "8", "nvidia.com/gpu": str(gpus)},
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"bootID": "boot-1"},
            },
        } | extra
        return self

    # the API
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock, UTC)

    def service(self, namespace: str, name: str, port: int | str) -> str:
        return f"/svc/{name}"

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        if path == NODES:
            return {"items": copy.deepcopy(list(self.nodes.values()))}
        if path.startswith(NODES):
            return copy.deepcopy(self.nodes[path.rpartition("/")[2]])
        if "/configmaps/" in path:
            name = path.rpartition("/")[2]
            if name not in self.maps:
                raise ClusterError("not found", 404)
            return {"data": self.maps[name]}
        if "/leases/" in path:
            if path not in self.leases:
                raise ClusterError("not found", 404)
            return self.leases[path]
        if path.startswith(EVENTS):
            return self._event(path.rpartition("/")[2])
        assert path.endswith("/query")
        assert query
        return {"status": "success", "data": {"result": self._answer(query["query"])}}

    def _event(self, name: str) -> dict[str, Any]:
        for event in self.events:
            if event["metadata"]["name"] == name:
                return event
        raise ClusterError("not found", 404)

    def _answer(self, expression: str) -> list[dict[str, Any]]:
        if "ALERTS" not in expression:
            return [{"metric": {}, "value": [self.clock, str(self.clock - self.scrape_age)]}]
        labels = [{"alertname": "Watchdog"}]
        labels += [
            {"node": node, **label_set}
            for node, alerts in self.faults.items()
            for label_set in alerts
        ]
        value = [self.clock, str(self.clock - self.rules_age)]
        return [{"metric": label_set, "value": value} for label_set in labels]

    def send(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        if "/leases" in path:
            return self._lease(method, path, body)
        self.live()
        self.writes.append((method, path))
        if path.startswith(NODES):
            name = path.rpartition("/")[2]
            if body["metadata"]["resourceVersion"] != self.version(name):
                raise ClusterError("conflict", 409)
            self.nodes[name] = copy.deepcopy(body)
            self.touch(name)
        elif path.endswith("/configmaps"):
            self.maps[body["metadata"]["name"]] = body["data"]
        else:
            if body["metadata"]["name"] in {event["metadata"]["name"] for event in self.events}:
                raise ClusterError("exists", 409)
            self.events.append(body)
        return body

    def _lease(self, method: str, path: str, body: Any) -> Any:
        if method == "DELETE":
            return self.leases.pop(path)
        self.leases[f"{path}/{body['metadata']['name']}" if method == "POST" else path] = body
        return body

    def version(self, name: str) -> str:
        return str(self.nodes[name]["metadata"]["resourceVersion"])

    def touch(self, name: str) -> None:
        self.nodes[name]["metadata"]["resourceVersion"] = str(int(self.version(name)) + 1)

    def live(self) -> None:
        if self.lives is not None:
            self.lives -= 1
            if self.lives < 0:
                raise KilledError

    # on nodes
    def drain(self, node: str) -> str:
        self._job("drain", node)
        assert self.node(node).cordoned
        return "ml/train-0 is kept by PodDisruptionBudget ml/train" if node in self.blocked else ""

    def reset(self, node: str, gpus: tuple[str, ...]) -> str:
        assert gpus, "a reset is of GPUs"
        return self._repair("reset", node)

    def reboot(self, node: str) -> str:
        info = self.nodes[node]["status"]["nodeInfo"]
        info["bootID"] = f"boot-{int(info['bootID'][5:]) + 1}"
        return self._repair("reboot", node)

    def prove(self, node: str) -> str:
        self._job("prove", node)
        return "vectorAdd failed" if self.faults.get(node) else ""

    def hand_over(self, node: str, repair: Repair) -> str:
        self._job("hand_over", node)
        return f"admin:/bundles/{node}.tar.gz"

    def _repair(self, job: str, node: str) -> str:
        if self.cure.get(node, "reset") == job or (job, self.cure.get(node)) == ("reboot", None):
            self.faults.pop(node, None)
            status = self.nodes[node]["status"]
            status["allocatable"] = dict(status["capacity"])
        self._job(job, node)
        return ""

    def _job(self, job: str, node: str) -> None:
        """Killed when it is done, before anybody knows: the worst moment."""
        node_state = self.node(node)
        assert (node_state.tainted, node_state.cordoned) == (True, True), (
            f"{job} of a node in service"
        )
        if job in self.undecided:
            raise UndecidedError(f"{job}: no connection")
        self.did.append((job, node))
        self.live()

    # people
    def cordon(self, name: str, on: bool = True) -> None:
        self.nodes[name]["spec"]["unschedulable"] = on
        self.touch(name)

    def untaint(self, name: str) -> None:
        self.nodes[name]["spec"]["taints"] = []
        self.touch(name)

    def node(self, name: str) -> GpuNode:
        return gpu_node(parse_node(self.nodes[name]))

    def states(self) -> dict[str, str | None]:
        return {name: self.node(name).state for name in self.nodes}

    def tainted(self) -> set[str]:
        return {
            name
            for name, item in self.nodes.items()
            if any(taint["key"] == TAINT_KEY for taint in item["spec"].get("taints", ()))
        }

    def fault(self, name: str, *alerts: dict[str, str], cure: str = "reset") -> Site:
        with_gpu = [
            alert if alert is GPU_LOST else {**alert, "UUID": uuid(name)} for alert in alerts
        ]
        self.faults[name] = with_gpu
        self.cure[name] = cure
        return self

    def run(self) -> None:
        """One run of the timer."""
        Controller(
            self, self.settings, self, self.log_entries.append, refusal=lambda: self.refusal
        ).run()

    def runs(self, count: int = 6, every_s: float = 120) -> Site:
        for _ in range(count):
            self.run()
            self.clock += every_s
        return self


def site_settings(**remediate: Any) -> Settings:
    return parse_settings({"remediate": remediate})


def site(count: int = 4, **remediate: Any) -> Site:
    created = Site(settings=site_settings(**remediate))
    for index in range(1, count + 1):
        created.add(f"gpu{index}")
    return created


def why_not(site: Site, node: str = "gpu1") -> str:
    """Why nothing is done with a node."""
    world = observe(site, site.settings, site.clock)
    decision = decide(world, site.clock, site.settings.remediate)
    (held_repair,) = (candidate for candidate in decision.held_nodes if candidate.node == node)
    return "; ".join(held_repair.reasons)
