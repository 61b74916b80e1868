"""One fault of each family: what it changes on the machine, in the cluster and in the metrics, and
what verdicts and alerts are to say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tests.populations.machine import Machine
from tests.populations.model import Card, Instance, Population
from tests.populations.offers import allocatable, devices
from tests.populations.page import Page

FIRST = frozenset({0})
_FAILED = "Failed to launch vectorAdd kernel (error code uncorrectable ECC error encountered)!\n"
_802 = "Failed to allocate device vector A (error code system not yet initialized)!\n"
_NO_CUDA = "Failed to allocate device vector A (error code unknown error)!\n"
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


@dataclass(frozen=True)
class Fault:
    """A fault of the node's first GPU, or of what stands above it.

    + needs: fields without which a kind of GPU cannot show it
    + only: names of the kinds that can show it; none: any
    + on_fabric, on_mig: only GPUs of an NVLink fabric, or with MIG, can show it
    + machine: the machine's own state
    + fails: log of the pod that gets a device of the GPU; everywhere: of any GPU of the node
    + advertised: allocatable then
    + page, rising: what the exporter shows
    + cluster: settings of `Cluster` that differ
    + course: settings of `Course` that differ
    + links: links of the chain that fail; single, beside: and these where the node has no other
      GPU, or has one
    + alerts, alerts_alone: alerts that fire; likewise
    + untold: kind -> those of them that do not fire there
    """

    name: str
    links: frozenset[str]
    alerts: frozenset[str]
    single: frozenset[str] = frozenset()
    multiple: frozenset[str] = frozenset()
    alerts_alone: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    only: frozenset[str] = frozenset()
    on_fabric: bool = False
    on_mig: bool = False
    untold: Mapping[str, frozenset[str]] = field(default_factory=dict)
    machine: Mapping[str, object] = field(default_factory=dict)
    fails: str = ""
    everywhere: bool = False
    advertised: Callable[[Population], Mapping[str, str]] | None = None
    page: Callable[[Page], Page] = lambda page: page
    rising: Mapping[str, float] = field(default_factory=dict)
    cluster: Mapping[str, object] = field(default_factory=dict)
    course: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def visible(self) -> bool:
        """Whether metrics show anything of it."""
        return bool(self.alerts)

    def expressible(self, population: Population) -> bool:
        """Whether this kind of GPU can show the fault at all."""
        if self.only and population.name not in self.only:
            return False
        if self.on_fabric and population.fabric != "Completed":
            return False
        if self.on_mig and not population.cards[0].instances:
            return False
        values = population.metrics(population.cards[0], None)
        return all(name in values for name in self.needs)

    def failing(self, population: Population) -> frozenset[str]:
        """Links that fail on such a node."""
        return self.links | (self.single if len(population.cards) == 1 else self.multiple)

    def firing(self, population: Population) -> frozenset[str]:
        """Alerts that fire on such a node."""
        alerts = self.alerts | (self.alerts_alone if len(population.cards) == 1 else frozenset())
        return alerts - self.untold.get(population.name, frozenset())

    def on(self, population: Population) -> Machine:
        return Machine(population, **self.machine)  # type: ignore[arg-type]

    def logs(self, population: Population) -> dict[str, str]:
        """UUID of a device -> log of the pod that gets it."""
        hit = devices(population) if self.everywhere else _of_first(population)
        return dict.fromkeys(hit, self.fails) if self.fails else {}


def _of_first(population: Population) -> list[str]:
    card = population.cards[0]
    return [instance.uuid for instance in card.instances] or [card.uuid]


def _shows(**of: float) -> Callable[[Page], Page]:
    """The first GPU shows these values, on each of its instances; metrics without DCGM_FI_DEV_."""
    changed = {f"DCGM_FI_DEV_{name}": value for name, value in of.items()}

    def change(
        card: Card, instance: Instance | None, values: dict[str, float]
    ) -> Mapping[str, float]:
        return values | changed if card.index == 0 else values

    return lambda page: replace(page, change=change)


def _without_first(population: Population) -> dict[str, str]:
    current = allocatable(population)
    remaining = allocatable(population, FIRST)
    return {name: remaining.get(name, "0") for name in current}


def _zero_allocatable(population: Population) -> dict[str, str]:
    return dict.fromkeys(allocatable(population), "0")


def _set(*names: str) -> frozenset[str]:
    return frozenset(names)


FAULTS = (
    Fault(
        "a GPU is lost",
        _set("nvidia-smi"),
        _set("GPULost", "GPUDeviceUnhealthy"),
        single=_set("allocatable"),
        alerts_alone=_set("GPUMetricsMissing", "GPUDevicePluginMissing"),
        machine={"lost_cards": FIRST},
        advertised=_without_first,
        page=lambda page: replace(page, missing_cards=FIRST),
    ),
    Fault(
        "a GPU left the bus",
        _set("pci"),
        _set("GPULost", "GPUDeviceUnhealthy"),
        single=_set("nvidia-smi", "allocatable"),
        alerts_alone=_set("GPUMetricsMissing", "GPUDevicePluginMissing"),
        machine={"missing_cards": FIRST},
        advertised=_without_first,
        page=lambda page: replace(page, missing_cards=FIRST),
    ),
    Fault(
        "a lost GPU stops the exporter",
        _set("nvidia-smi", "targets"),
        _set("GPULost", "GPUExporterDown", "GPUDeviceUnhealthy"),
        single=_set("allocatable"),
        multiple=_set("exporter", "prometheus"),
        alerts_alone=_set("GPUDevicePluginMissing"),
        # without its exporter, GPUs are counted by what the kubelet offers: instances here
        untold={"mig-a100-mixed": _set("GPULost")},
        machine={"lost_cards": FIRST},
        advertised=_without_first,
        page=lambda page: replace(page, missing_cards=FIRST),
        cluster={"exporter": "Pending", "target": "down"},
        course={"scraped": False},
    ),
    Fault(
        "a GPU requires a reset",
        _set("nvidia-smi", "workload", "health"),
        _set("GPURecoveryAction"),
        needs=("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",),
        machine={"resets": FIRST},
        fails=_NO_CUDA,
        page=_shows(GET_GPU_RECOVERY_ACTION=1),
    ),
    Fault(
        "a fatal XID, and the plugin takes the GPU away",
        _set("allocatable"),
        _set("GPUXidFatal", "GPUDeviceUnhealthy"),
        alerts_alone=_set("GPUDevicePluginMissing"),
        advertised=_without_first,
        page=lambda page: replace(page, xids={(0, 119): 1}),
    ),
    Fault(
        "an XID of a program",
        _set(),
        _set("GPUXidApplication"),
        page=lambda page: replace(page, xids={(0, 31): 1}),
    ),
    Fault(
        "an uncorrectable memory error",
        _set("workload", "health"),
        _set("GPUUncorrectableECC"),
        needs=("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",),
        fails=_FAILED,
        page=_shows(ECC_DBE_VOL_TOTAL=1),
    ),
    Fault(
        "a row cannot be remapped",
        _set("health"),
        _set("GPURowRemapFailure"),
        needs=("DCGM_FI_DEV_ROW_REMAP_FAILURE",),
        page=_shows(ROW_REMAP_FAILURE=1),
    ),
    Fault(
        "a row cannot be remapped, under MIG",
        _set(),
        _set("GPURowRemapFailure", "GPUXidFatal"),
        on_mig=True,
        page=lambda page: replace(page, xids={(0, 64): 1}),
    ),
    Fault(
        "a remap waits for a reset, under MIG",
        _set(),
        _set("GPURowRemapPending"),
        on_mig=True,
        page=lambda page: replace(page, xids={(0, 63): 1}),
    ),
    Fault(
        "a remap waits for a reset",
        _set("health"),
        _set("GPURowRemapPending"),
        needs=("DCGM_FI_DEV_ROW_REMAP_PENDING",),
        page=_shows(ROW_REMAP_PENDING=1),
    ),
    Fault(
        "a flood of corrected errors, and a row remapped",
        _set(),
        _set("GPUMemoryDegrading"),
        needs=("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",),
        page=_shows(CORRECTABLE_REMAPPED_ROWS=1),
        rising={"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": 600},
    ),
    Fault(
        "heat slows a GPU down",
        _set("health"),
        _set("GPUThermalThrottle"),
        needs=("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",),
        page=_shows(CLOCKS_EVENT_REASONS=0x48),
        rising={"DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS": 30e9},
    ),
    Fault(
        "the PCIe link is at generation 1 under load",
        _set(),
        _set("GPUPcieSpeedDegraded"),
        needs=("DCGM_FI_DEV_PCIE_LINK_GEN",),
        # its recording is of a video encoder: 7 % utilization are no load
        untold={"geforce": _set("GPUPcieSpeedDegraded")},
        page=_shows(PCIE_LINK_GEN=1),
    ),
    Fault(
        "the exporter does not answer",
        _set("exporter", "prometheus", "targets"),
        _set("GPUExporterDown"),
        cluster={"exporter": "Pending", "target": "down"},
        course={"scraped": False},
    ),
    Fault(
        "there is no exporter",
        _set("exporter", "prometheus"),
        _set("GPUNodeNotMonitored"),
        cluster={"exporter": ""},
        course={"target": False},
    ),
    Fault(
        "the exporter's values stand still",
        _set("exporter"),
        _set("GPUMetricsFrozen"),
        needs=(_ENERGY,),
        rising={_ENERGY: 0},
        cluster={"frozen": True, "looks": 9},
    ),
    Fault(
        "Prometheus has old samples only",
        _set("prometheus"),
        _set(),
        cluster={"age": 400.0},
    ),
    Fault(
        "the device plugin offers nothing",
        _set("allocatable"),
        _set("GPUDeviceUnhealthy", "GPUDevicePluginMissing"),
        advertised=_zero_allocatable,
    ),
    Fault("vectorAdd fails", _set("workload"), _set(), fails=_FAILED),
    Fault(
        "the fabric is not ready",
        _set("nvidia-smi", "workload"),
        _set("GPUFabricNotReady"),
        on_fabric=True,
        machine={"fabric": "In Progress"},
        fails=_802,
        everywhere=True,
        page=_shows(FABRIC_MANAGER_STATUS=2),
    ),
)
