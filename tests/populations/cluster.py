"""A cluster of one population's node: it schedules pods on the node's devices, and the node's
exporter and Prometheus tell of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpuboot.cluster.node_reports import LEASES
from gpuboot.telemetry.expressions import metric_names
from gpuboot.verify.prometheus import parse_exposition
from tests.populations.model import Card, Instance, Population
from tests.populations.offers import devices, node_object
from tests.populations.page import Page
from tests.unit.fake_cluster import FakeCluster
from tests.unit.fake_pods import PASSED, vectoradd_lines

NOW = 1795270540.0
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


@dataclass(kw_only=True)
class Cluster(FakeCluster):
    """+ of: the node
    + page: what its exporter shows while nobody holds a device
    + advertised: allocatable, where it is not all that the node has
    + fails: UUID of a device -> log of the pod that gets it
    + exporter: phase of the exporter's pod; "" for no pod
    + target: health of the scrape target
    + age: of Prometheus' samples, in seconds
    + frozen: the exporter shows the same values for ever
    + on: pod and container -> UUIDs of the devices that it got
    + looks: how often each pod's log is asked for in vain
    """

    of: Population
    page: Page
    advertised: Mapping[str, str] | None = None
    fails: Mapping[str, str] = field(default_factory=dict)
    exporter: str = "Running"
    target: str = "up"
    age: float = 2.5
    frozen: bool = False
    looks: int = 0
    on: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    looked: Counter[str] = field(default_factory=Counter)

    def _answer(self, path: str, query: dict[str, str]) -> Any:
        if path == "/api/v1/nodes":
            return {"items": [node_object(self.of, self.advertised)]}
        if path == LEASES:
            return {"items": [self._lease(self.of.node)]}
        return super()._answer(path, query)

    def _exporters(self) -> list[dict[str, Any]]:
        meta = {"namespace": "gpu-operator", "uid": "e1", "annotations": self.annotations}
        pod = {
            "metadata": {"name": f"nvidia-dcgm-exporter-{self.of.name}", **meta},
            "spec": {"nodeName": self.of.node},
            "status": {"phase": self.exporter},
        }
        return [pod] if self.exporter else []

    def _metrics(self, node: str) -> str:
        self.energy += 0 if self.frozen else 1_000_000
        before = self.page.change

        def risen(
            card: Card, instance: Instance | None, values: dict[str, float]
        ) -> dict[str, float]:
            changed = dict(before(card, instance, values)) if before else dict(values)
            return changed | {
                name: changed[name] + self.energy for name in (_ENERGY,) if name in changed
            }

        holders = {uuid: list(uuids) for uuid, uuids in self.page.holders.items()}
        for (pod, _), uuids in self._current().items():
            for uuid in uuids:
                holders.setdefault(uuid, []).append((self._newest, pod))
        return replace(self.page, holders=holders, change=risen).text()

    def _prometheus(self, path: str, query: dict[str, str]) -> Any:
        data: Any
        if path.endswith("/query"):
            data = {"result": self._query(query["query"])}
        elif path.endswith("/targets"):
            labels = {"job": "nvidia-dcgm-exporter", "node": self.of.node}
            own_target = {
                "labels": labels,
                "health": self.target,
                "lastError": "connection refused",
            }
            other_targets = [{"labels": {"job": "apiserver"}, "health": "up"}]
            data = {"activeTargets": other_targets + ([own_target] if self.exporter else [])}
        elif path.endswith("/alerts"):
            data = {"alerts": []}
        else:
            return super()._prometheus(path, query)
        return {"status": "success", "data": data}

    def _query(self, expression: str) -> list[dict[str, Any]]:
        """The newest sample of the series that the expression names, one for each set of labels.

        That is what `timestamp(a) or on (UUID, …) timestamp(b)` gives, whose value is the sample's
        time: of each device those of the first metric that it has.
        """
        names = sorted(metric_names(expression), key=expression.index)
        if self.exporter != "Running":
            return []
        results: dict[str, dict[str, Any]] = {}
        first: dict[tuple[str, str], str] = {}
        samples = list(parse_exposition(self._metrics(self.of.node)))
        for sample in sorted(
            (sample for sample in samples if sample.name in names),
            key=lambda sample: names.index(sample.name),
        ):
            device = sample.labels.get("UUID", ""), sample.labels.get("GPU_I_ID", "")
            if first.setdefault(device, sample.name) == sample.name:
                labels = {**sample.labels, "node": self.of.node}
                value = [NOW, str(NOW - self.age)]
                results.setdefault(json.dumps(labels), {"metric": labels, "value": value})
        return list(results.values())

    def _create_pod(self, body: dict[str, Any]) -> dict[str, Any]:
        containers = [item for item in body["spec"]["containers"] if "resources" in item]
        if not containers:
            return super()._create_pod(body)
        self.created.append(body)
        name = body["metadata"]["name"]
        pod = {"metadata": body["metadata"], "spec": dict(body["spec"]), "status": {}}
        self.pods[name] = pod
        assigned = {}
        free = self._free()
        for container in containers:
            [(resource, count)] = container["resources"]["limits"].items()
            fitting = [uuid for uuid, kind in free if kind == resource][: int(count)]
            free = [item for item in free if item[0] not in fitting or self.of.shares > 1]
            if len(fitting) < int(count):
                message = f"0/1 nodes are available: 1 Insufficient {resource}."
                condition = {"type": "PodScheduled", "status": "False", "message": message}
                pod["status"] = {"phase": "Pending", "conditions": [condition]}
                return pod
            assigned[name, container["name"]] = fitting
        self.on |= assigned
        pod["spec"]["nodeName"] = self.of.node
        pod["status"] = self._status(pod, self.of.node)
        return pod

    def _free(self) -> list[tuple[str, str]]:
        """UUID and resource of each device that a pod can get."""
        usage = Counter(uuid for uuids in self._current().values() for uuid in uuids)
        available = devices(self.of, self.page.missing_cards).items()
        return [item for item in available if usage[item[0]] < self.of.shares]

    def _current(self) -> dict[tuple[str, str], list[str]]:
        return {at: uuids for at, uuids in self.on.items() if at[0] in self.pods}

    def _held_devices(self, pod: str, container: str) -> list[Any]:
        return list(self._current().get((pod, container), []))

    def _gpu_log(self, pod: str, container: str) -> str:
        self.looked[f"{pod} {container}"] += 1
        if self.looked[f"{pod} {container}"] <= self.looks:
            return ""
        uuids = self._held_devices(pod, container)
        lines = []
        for uuid in uuids:
            cards = [
                (card, instance) for card, instance in self.of.instances if instance.uuid == uuid
            ]
            lines.append(f"GPU 0: {self.of.model} (UUID: {cards[0][0].uuid if cards else uuid})")
            lines += [
                f"  MIG {instance.profile}     Device  0: (UUID: {uuid})" for _, instance in cards
            ]
        runs = {uuid: self.fails.get(uuid, PASSED) for uuid in uuids}
        return "\n".join([*lines, *vectoradd_lines(runs)]) + "\n"
