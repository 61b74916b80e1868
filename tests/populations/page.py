"""A population's dcgm-exporter: its /metrics page, as of release 4.8.3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpuboot.telemetry import BY_NAME
from tests.populations.model import REQUESTED_FIELDS, Card, Instance, Population

# What DCGM writes for a value that a GPU has not: exporters up to 4.0, and custom ones, print it.
BLANK_VALUE = 9223372036854775794
# Each has a series of its own (gpu_health_collector.go).
WATCHES = [
    "PCIE",
    "NVLINK",
    "PMU",
    "MCU",
    "MEM",
    "SM",
    "INFOROM",
    "THERMAL",
    "POWER",
    "DRIVER",
    "ALL",
]
# Of a shared GPU they have a series of the device beside those of its pods, which tell of the pod
# alone (dcgm-exporter 4.8.3, kubernetes.go, createPerProcessMetrics).
BY_PROCESS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")
Device = tuple[Card, Instance | None]
Change = Callable[[Card, Instance | None, dict[str, float]], Mapping[str, float]]


@dataclass(frozen=True)
class Page:
    """What the exporter of a population shows.

    + holders: UUID of a GPU or MIG instance -> namespace and pod that hold it, or each of its
      shares
    + busy: the GPUs are at work
    + blanks: print blank values rather than leave them out
    + missing_cards: indices of GPUs that the exporter does not see
    + change: what is different from a GPU in order
    + xids: (GPU's index, XID) -> how often it was counted
    + watches: (GPU's index, DCGM's health watch) -> its error code and level, where it finds any
    """

    of: Population
    holders: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    busy: bool = False
    blanks: bool = False
    missing_cards: frozenset[int] = frozenset()
    change: Change | None = None
    xids: Mapping[tuple[int, int], int] = field(default_factory=dict)
    watches: Mapping[tuple[int, str], tuple[str, int]] = field(default_factory=dict)

    @property
    def devices(self) -> Iterator[Device]:
        """What it monitors: instances in place of a GPU that is cut (device_monitoring.go)."""
        for card in self.of.cards:
            if card.index not in self.missing_cards:
                for instance in card.instances or (None,):
                    yield card, instance

    def text(self) -> str:
        lines: dict[str, list[str]] = {metric: [] for metric in REQUESTED_FIELDS}
        for metric, labels, value in self.samples():
            inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
            lines[metric].append(f"{metric}{{{inside}}} {value:g}")
        blocks = (
            f"# HELP {name} {BY_NAME[name].help}\n# TYPE {name} {BY_NAME[name].kind}\n"
            + "\n".join(rows)
            for name, rows in lines.items()
            if rows
        )
        return "\n".join(blocks) + "\n"

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Name, labels and value of every series."""
        for card, instance in self.devices:
            values = self.of.metrics(card, instance, self.busy)
            values = dict(self.change(card, instance, values)) if self.change else values
            base_labels = self.labels(card, instance)
            shares = [
                {**base_labels, **labels} for labels in self._share_labels(card, instance)
            ] or [base_labels]
            if self.of.shares > 1 and shares != [base_labels]:
                for metric in BY_PROCESS:
                    if metric in values:
                        yield metric, base_labels, values[metric]
            for labels in shares:
                yield from self._of(card, values, labels)
        yield from self._health()

    def _of(
        self, card: Card, values: Mapping[str, float], labels: dict[str, str]
    ) -> Iterator[tuple[str, dict[str, str], float]]:
        """The series of a device, or of one of its shares."""
        for metric in REQUESTED_FIELDS:
            if metric == "DCGM_EXP_GPU_HEALTH_STATUS":
                continue
            if metric in BY_PROCESS and metric in values and "vgpu" in labels:
                yield metric, {**labels, "pod_uid": labels["pod"]}, 0
            elif metric in values:
                yield metric, labels, values[metric]
            elif self.blanks and metric.startswith("DCGM_FI_DEV_"):
                yield metric, labels, BLANK_VALUE
        for (index, xid), count in self.xids.items():
            if index == card.index:
                yield "DCGM_EXP_XID_ERRORS_TOTAL", {**labels, "xid": str(xid)}, count

    def _share_labels(self, card: Card, instance: Instance | None) -> Iterator[dict[str, str]]:
        """What series say of who holds a device; several of one that is shared."""
        uuid = instance.uuid if instance else card.uuid if not card.instances else ""
        for share, (namespace, pod) in enumerate(self.holders.get(uuid, ())):
            pod_labels = {"container": "main", "namespace": namespace, "pod": pod}
            yield pod_labels | ({"vgpu": str(share)} if self.of.shares > 1 else {})

    def _health(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """One verdict for each GPU and watch, whatever the GPU is cut into."""
        for card in self.of.cards:
            if card.index not in self.missing_cards:
                for watch in WATCHES:
                    code, level = self.watches.get((card.index, watch), ("DCGM_FR_OK", 0))
                    extra = {"health_watch": watch, "health_error_code": code}
                    for share_labels in list(self._share_labels(card, None)) or [{}]:
                        labels = {**self.labels(card, None), **share_labels, **extra}
                        yield "DCGM_EXP_GPU_HEALTH_STATUS", labels, level

    def labels(self, card: Card, instance: Instance | None) -> dict[str, str]:
        """Labels of a series, in the exporter's order (render_metrics.go)."""
        result = {
            "gpu": str(card.index),
            "UUID": card.uuid,
            "pci_bus_id": card.bus,
            "device": f"nvidia{card.index}",
            "modelName": self.of.model,
        }
        if instance is not None:
            result |= {"GPU_I_PROFILE": instance.profile, "GPU_I_ID": str(instance.gi)}
        return result | {
            "hostname": f"nvidia-dcgm-exporter-{self.of.name}",
            "DCGM_FI_DRIVER_VERSION": self.of.driver,
        }
