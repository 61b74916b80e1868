"""What if a derived value is not so? The opposite of each that a verdict depends on.

Here are those by which nothing is wrong: verdicts must stay. Those by which a GPU is broken are
faults (tests/populations/watch_faults.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from gpuboot.hosts.health_watches import Card as Kind
from tests.populations import hopper
from tests.populations import sources as s
from tests.populations.common import NO_NVLINK, NVLINK, THROTTLED
from tests.populations.derivations import derivations
from tests.populations.model import Card, Instance, Population, Source, name, values
from tests.populations.page import Page

# as B200, but for names: NVIDIA/aicr#2641 is of GB300. And two cards without a bridge, by
# NVIDIA/NVSentinel#1481, Azure/azurehpc-health-checks#162
GB300 = replace(
    hopper.B200, name="gb300", title="GB300", model="NVIDIA GB300",
    cards=tuple(
        Card(n, f"GPU-5a1e0900-5157-4c6c-8abc-{n:012}", f"0000000{8 + n}:01:00.0") for n in (0, 1)
    ),
)  # fmt: skip
A100_PCIE = replace(
    hopper.H100, name="a100-pcie", title="A100 PCIe, no bridge", model="NVIDIA A100 80GB PCIe",
    fabric="[N/A]", other_devices=(),
    idle=(*hopper.H100.idle, values(s.NO_FABRIC, FABRIC_MANAGER_STATUS=0)),
    cards=tuple(
        Card(n, f"GPU-5a1e0a00-5157-4c6c-8abc-{n:012}", f"00000000:{17 + n}:00.0") for n in (0, 1)
    ),
)  # fmt: skip
GB200 = replace(
    GB300, name="gb200", title="GB200", model="NVIDIA GB200", device="0x2941",
    cards=tuple(
        Card(n, f"GPU-5a1e0b00-5157-4c6c-8abc-{n:012}", f"0000000{8 + n}:01:00.0") for n in (0, 1)
    ),
)  # fmt: skip
# PCIe cards without links: as the A10G, with the interface of a driver that tells all
_CARD = replace(
    hopper.H100, fabric="[N/A]", other_devices=(), mig="[N/A]",
    idle=(*hopper.H100.idle, values(s.NO_FABRIC, FABRIC_MANAGER_STATUS=0)),
    lacks=(*hopper.H100.lacks, NO_NVLINK),
)  # fmt: skip
L40S = replace(
    _CARD, name="l40s", title="L40S", model="NVIDIA L40S", device="0x26b9", memory="46068",
    cards=tuple(
        Card(n, f"GPU-5a1e0c00-5157-4c6c-8abc-{n:012}", f"00000000:{27 + n}:00.0") for n in (0, 1)
    ),
)  # fmt: skip
RTX_PRO_6000 = replace(
    _CARD, name="rtx-pro-6000", title="RTX PRO 6000", device="0x2bb5", memory="97887",
    model="NVIDIA RTX PRO 6000 Blackwell Server Edition",
    cards=tuple(
        Card(n, f"GPU-5a1e0d00-5157-4c6c-8abc-{n:012}", f"00000000:{37 + n}:00.0") for n in (0, 1)
    ),
)  # fmt: skip
RELATED = (GB300, GB200, L40S, RTX_PRO_6000, A100_PCIE)
# a replay or two an hour, and some CRC errors
SLOW = {name(short): 0.03 for short in NVLINK.split()}


@dataclass(frozen=True)
class Opposite:
    """A derived value that is not so.

    + description: what is so instead; source: the derivation; of: kinds of GPUs that can show it
    """

    description: str
    source: Source
    of: Callable[[Population], bool]
    page: Callable[[Page], Page]

    def __str__(self) -> str:
        return self.description


def kind(population: Population) -> Kind:
    return Kind(population.model, other_gpus=len(population.cards) - 1)


def watch(page: Page, name: str, code: str, level: int) -> Page:
    """Every GPU's health watch says that. + code: without DCGM_FR_"""
    extra = {(card.index, name): (f"DCGM_FR_{code}", level) for card in page.of.cards}
    return replace(page, watches={**page.watches, **extra})


def shows(page: Page, **of: float) -> Page:
    """Every GPU shows these values; metrics without DCGM_FI_DEV_."""
    overrides = {name(short): value for short, value in of.items()}

    def change(
        card: Card, instance: Instance | None, values: dict[str, float]
    ) -> Mapping[str, float]:
        before = page.change(card, instance, values) if page.change else values
        return {**before, **overrides}

    return replace(page, change=change)


def fills(page: Page, **of: float) -> Page:
    """GPUs that have no value of these show one."""
    added = {name(short): value for short, value in of.items()}

    def change(
        card: Card, instance: Instance | None, values: dict[str, float]
    ) -> Mapping[str, float]:
        before = page.change(card, instance, values) if page.change else values
        return {**added, **before}

    return replace(page, change=change)


def _unlimited(page: Page) -> Page:
    """At work without a reason for lower clocks, so at the highest."""

    def change(
        card: Card, instance: Instance | None, values: dict[str, float]
    ) -> Mapping[str, float]:
        before = page.change(card, instance, values) if page.change else values
        clock = before[name("MAX_SM_CLOCK")]
        limits = {"SM_CLOCK": clock, "CLOCKS_EVENT_REASONS": 0.0, "POWER_USAGE": 90.0}
        return {**before, **{name(short): value for short, value in limits.items()}}

    return replace(page, change=change)


def rests_on(source: Source) -> Callable[[Population], bool]:
    """Kinds of which a value, or its absence, stands on this."""
    return lambda population: any(
        derived_from == source for derived_from, _ in derivations([population])
    )


def profiled(busy: bool) -> dict[str, float]:
    """What GPUs show that can be profiled, idle or at work."""
    active = "GR_ENGINE_ACTIVE SM_ACTIVE SM_OCCUPANCY PIPE_TENSOR_ACTIVE DRAM_ACTIVE"
    return {f"PROF_{short}": 0.9 if busy else 0.0 for short in active.split()}


SLOT = {"PCIE_MAX_LINK_GEN": 4.0, "PCIE_LINK_GEN": 4.0} | dict.fromkeys(
    ("PCIE_MAX_LINK_WIDTH", "PCIE_LINK_WIDTH"), 8.0
)


def has(*shorts: str) -> Callable[[Population], bool]:
    """Kinds that have a value of these fields."""
    fields = {name(short) for short in shorts}
    return lambda population: fields <= population.metrics(population.cards[0], None).keys()


WELL = (
    Opposite(
        "NVLink counted errors since the last reset, and DCGM fails the card for that",
        s.NO_HEALTH,
        lambda gpu_kind: kind(gpu_kind).is_one_of("before Blackwell"),
        lambda page: watch(page, "NVLINK", "NVLINK_ERROR_CRITICAL", 20),
    ),
    Opposite(
        "links were recovered since the last reset, and DCGM warns of that",
        s.NO_HEALTH,
        lambda gpu_kind: kind(gpu_kind).is_one_of("Blackwell"),
        lambda page: watch(page, "NVLINK", "NVLINK_ERROR_CRITICAL", 10),
    ),
    Opposite(
        "the board has no bridge, and DCGM fails the card for links that are down",
        s.NO_HEALTH,
        lambda gpu_kind: not kind(gpu_kind).is_one_of("linked"),
        lambda page: watch(page, "NVLINK", "NVLINK_DOWN", 20),
    ),
    Opposite(
        "no IMEX daemon runs, and DCGM fails the card for that",
        s.NO_HEALTH,
        lambda gpu_kind: True,
        lambda page: watch(page, "NVLINK", "IMEX_UNHEALTHY", 20),
    ),
    Opposite(
        "it runs at its power limit, and DCGM warns of that",
        s.NO_HEALTH,
        lambda gpu_kind: True,
        lambda page: watch(page, "POWER", "CLOCKS_EVENT_POWER", 10),
    ),
    Opposite(
        "DCGM remembers a program's XID",
        s.NO_HEALTH,
        lambda gpu_kind: True,
        lambda page: watch(page, "MEM", "XID_ERROR", 10),
    ),
    Opposite(
        "the driver is too old to tell of a fabric, and DCGM fails the card for that",
        s.NO_FABRIC,
        lambda gpu_kind: has("FABRIC_MANAGER_STATUS")(gpu_kind) and gpu_kind.fabric != "Completed",
        lambda page: watch(
            shows(page, FABRIC_MANAGER_STATUS=6), "NVLINK", "FABRIC_PROBE_STATE", 20
        ),
    ),
    Opposite(
        "NVLink counted errors before",
        s.HEALTHY,
        has(*NVLINK.split()),
        lambda page: shows(page, **dict.fromkeys(NVLINK.split(), 1234.0)),
    ),
    Opposite(
        "it was slowed down before",
        s.HEALTHY,
        has(*THROTTLED.split()),
        lambda page: shows(page, **dict.fromkeys(THROTTLED.split(), 9e12)),
    ),
    Opposite(
        "it works at its highest clock, and is not at its power limit",
        s.LOADED,
        has("POWER_USAGE", "CLOCKS_EVENT_REASONS", "SM_CLOCK", "MAX_SM_CLOCK"),
        _unlimited,
    ),
    Opposite(
        "its memory has a sensor",
        s.NO_MEMORY_SENSOR,
        rests_on(s.NO_MEMORY_SENSOR),
        lambda page: shows(page, MEMORY_TEMP=61),
    ),
    Opposite(
        "its memory is warmer, and PCIe had replays before",
        s.HOPPER,
        rests_on(s.HOPPER),
        lambda page: shows(page, PCIE_REPLAY_COUNTER=12, MEMORY_TEMP=64, GPU_TEMP_LIMIT=30),
    ),
    Opposite(
        "NVLink 5 counts in the old fields as well",
        s.NVLINK_5,
        rests_on(s.NVLINK_5),
        lambda page: fills(page, **dict.fromkeys(NVLINK.split(), 1234.0)),
    ),
    Opposite(
        "it does tell of clocks, limits, slot, fabric and recovery",
        s.UNKNOWN,
        rests_on(s.UNKNOWN),
        lambda page: fills(
            page,
            **SLOT,
            **dict.fromkeys(THROTTLED.split(), 9e12),
            CLOCKS_EVENT_REASONS=1,
            MEM_MAX_OP_TEMP=95,
            GPU_TEMP_LIMIT=40,
            POWER_MGMT_LIMIT=300,
            ENFORCED_POWER_LIMIT=300,
            FABRIC_MANAGER_STATUS=0,
            GET_GPU_RECOVERY_ACTION=0,
        ),
    ),
    Opposite(
        "it can be profiled",
        s.NO_PROFILING,
        rests_on(s.NO_PROFILING),
        lambda page: fills(page, **profiled(page.busy)),
    ),
    Opposite(
        "energy is counted from the driver's loading",
        s.ENERGY,
        has("TOTAL_ENERGY_CONSUMPTION"),
        lambda page: shows(page, TOTAL_ENERGY_CONSUMPTION=0),
    ),
    Opposite(
        "the driver does tell of a recovery action: none",
        s.OLD_DRIVER,
        lambda gpu_kind: not has("GET_GPU_RECOVERY_ACTION")(gpu_kind),
        lambda page: shows(page, GET_GPU_RECOVERY_ACTION=0),
    ),
)


def all_of(page: Page) -> Page:
    """All opposites together that this kind of GPU can show; of a watch the last."""
    for opposite in WELL:
        if opposite.of(page.of):
            page = opposite.page(page)
    return page


def without_derived(population: Population) -> Callable[..., Mapping[str, float]]:
    """Leaves out what no recording shows."""

    def change(
        card: Card, instance: Instance | None, values: dict[str, float]
    ) -> Mapping[str, float]:
        reported = population.reported(card)
        return {
            metric: value for metric, value in values.items() if reported[metric].source.recorded
        }

    return change


def rising(population: Population) -> dict[str, float]:
    """Counters that grow slowly."""
    return SLOW if has(*NVLINK.split())(population) else {}
