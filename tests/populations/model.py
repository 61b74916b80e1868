"""A population: one machine of a kind of GPU, and what each layer above says of it.

Values are recordings of real machines wherever one is public; what had to be derived says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from gpuboot.telemetry import BY_NAME, FIELDS
from gpuboot.telemetry.fields import Limit

Strategy = Literal["none", "single", "mixed"]
# Every field of our list that makes series of its own.
REQUESTED_FIELDS = tuple(f.name for f in FIELDS if f.default and f.kind != "label")
_MEMORY = ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_RESERVED")


@dataclass(frozen=True)
class Source:
    """Where a value comes from: a public recording of a real machine, or a reason.

    + origin: repository, path and line, or thread; of a derived value: how it follows, from what
    """

    origin: str
    recorded: bool = True


def derived(reason: str) -> Source:
    """A value that no public recording shows."""
    return Source(reason, recorded=False)


@dataclass(frozen=True)
class Values:
    """Fields with the value that the exporter gives them, all from one source."""

    source: Source
    of: Mapping[str, float]


@dataclass(frozen=True)
class Lack:
    """Fields that have no value on these GPUs, and how that is known."""

    description: str
    source: Source
    fields: frozenset[str]


def name(short: str) -> str:
    """The metric's whole name: GPU_TEMP, PROF_SM_ACTIVE and EXP_… leave out what is common."""
    for start in ("DCGM_FI_DEV_", "DCGM_FI_", "DCGM_"):
        if start + short in BY_NAME:
            return start + short
    raise ValueError(f"{short} is no field of ours")


def values(source: Source, /, **of: float) -> Values:
    return Values(source, {name(short): value for short, value in of.items()})


def zero(source: Source, shorts: str) -> Values:
    """Fields, by their short names, that are 0."""
    return values(source, **dict.fromkeys(shorts.split(), 0.0))


def lack(description: str, source: Source, shorts: str = "", limits: Iterable[Limit] = ()) -> Lack:
    """+ shorts, limits: the fields by short names, and all of our list with these limits"""
    limit_set = set(limits)
    names = {f.name for f in FIELDS if f.name in REQUESTED_FIELDS and limit_set & set(f.limits)}
    return Lack(description, source, frozenset(names | {name(short) for short in shorts.split()}))


@dataclass(frozen=True)
class Instance:
    """A MIG instance. fb: free, used and reserved MiB, None where DCGM gives none."""

    profile: str
    gi: int
    uuid: str
    fb: tuple[float, float, float] | None = None

    @property
    def resource(self) -> str:
        return f"nvidia.com/mig-{self.profile}"


@dataclass(frozen=True)
class Card:
    """One GPU. bus: as nvidia-smi writes it; instances: MIG mode is on where there are any."""

    index: int
    uuid: str
    bus: str
    instances: tuple[Instance, ...] = ()

    @property
    def slot(self) -> str:
        """The address in sysfs."""
        return f"{int(self.bus[:8], 16):04x}{self.bus[8:].lower()}"


@dataclass(frozen=True)
class Pci:
    """A device that is no GPU of ours, as sysfs has it."""

    slot: str
    vendor: str
    device: str
    kind: str


@dataclass(frozen=True)
class Population:
    """One node with GPUs of one kind.

    + title: the kind, for readers
    + model: product name by NVML, which the exporter's modelName repeats
    + device: PCI device id; kind: PCI class
    + memory: what `nvidia-smi --query-gpu=memory.total` answers, without its unit
    + mig: what mig.mode.current answers for a GPU without instances
    + fabric: what fabric.state answers
    + driver, flavour: version, and how /proc/driver/nvidia/version calls the module
    + references: sources of all of these
    + idle, busy: what the exporter gives without work; and what differs from that under load
    + lacks, mig_lacks: fields without a value; and those of a GPU that is cut by MIG besides
    + strategy: nvidia.com/mig.strategy
    + labels: of the node, beside what every GPU node has
    + shares: pods that may share one GPU; advertised: the resource that a whole GPU is offered as
    """

    name: str
    title: str
    model: str
    device: str
    memory: str
    mig: str
    fabric: str
    driver: str
    references: tuple[Source, ...]
    cards: tuple[Card, ...]
    idle: tuple[Values, ...]
    busy: tuple[Values, ...]
    lacks: tuple[Lack, ...]
    mig_lacks: tuple[Lack, ...] = ()
    flavour: str = "Open Kernel Module for x86_64"
    kind: str = "0x030200"
    strategy: Strategy = "none"
    other_devices: tuple[Pci, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    shares: int = 1
    advertised: str = "nvidia.com/gpu"

    def __str__(self) -> str:
        return self.name

    @property
    def node(self) -> str:
        return f"{self.name}-1"

    @cached_property
    def instances(self) -> tuple[tuple[Card, Instance], ...]:
        return tuple((card, instance) for card in self.cards for instance in card.instances)

    @cached_property
    def undivided(self) -> tuple[Card, ...]:
        """GPUs that are not cut by MIG."""
        return tuple(card for card in self.cards if not card.instances)

    def small(self) -> Population:
        """The same with two instances of each GPU at most."""
        cards = tuple(replace(card, instances=card.instances[-2:]) for card in self.cards)
        return replace(self, cards=cards)

    def absent(self, card: Card) -> dict[str, Lack]:
        """Field -> why the card has no value of it."""
        lacks = (*self.lacks, *(self.mig_lacks if card.instances else ()))
        return {metric: lack for lack in reversed(lacks) for metric in lack.fields}

    def reported(self, card: Card, busy: bool = False) -> dict[str, Values]:
        """Field -> where the card's value is from."""
        groups = (*self.idle, *(self.busy if busy else ()))
        by_metric = {metric: group for group in groups for metric in group.of}
        absent = self.absent(card)
        return {metric: group for metric, group in by_metric.items() if metric not in absent}

    def metrics(
        self, card: Card, instance: Instance | None, busy: bool = False
    ) -> dict[str, float]:
        """Field -> value of a GPU, or of one of its instances."""
        values = {metric: group.of[metric] for metric, group in self.reported(card, busy).items()}
        if instance is not None and instance.fb is not None:
            values |= dict(zip(_MEMORY, instance.fb, strict=True))
        return values

    @property
    def sources(self) -> tuple[Source, ...]:
        groups = [g.source for g in (*self.idle, *self.busy)]
        return (
            *self.references,
            *groups,
            *(lack.source for lack in (*self.lacks, *self.mig_lacks)),
        )
