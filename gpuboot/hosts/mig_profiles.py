"""Each GPU model's MIG profiles, how many of each fit, and which fit beside each other.

Profiles, counts and PCI device ids: gpu-operator v26.7.0, assets/state-mig-manager/
0400_configmap.yaml, with which a test compares them. The driver's own word counts for more
(`gpuboot.hosts.driver_mig`): names differ with its version, and it knows models that are not here.
Placements are those that `nvidia-smi mig -lgipp` prints, in memory slices (NVIDIA's MIG User Guide,
"Supported MIG Profiles").
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from gpuboot.config.support import Source

SOURCE = Source(date(2026, 8, 20), "gpu-operator v26.7.0, and NVIDIA's MIG User Guide")
Counts = Mapping[str, int]  # MIG profile -> how many of it a GPU can have, or is to have
_PROFILE = re.compile(r"(\d+)g\.(\d+)gb")
DISABLED, BALANCED = "all-disabled", "all-balanced"


@dataclass(frozen=True)
class Profile:
    """A kind of GPU instance.

    + name: as nvidia-smi spells it, e.g. `1g.10gb`, `1g.10gb+me`
    + compute, memory: slices that it takes; starts: memory slices at which it can begin
    + most: how many of it a GPU can have
    """

    name: str
    compute: int
    memory: int
    starts: tuple[int, ...]
    most: int


@dataclass(frozen=True)
class Card:
    """A GPU model that MIG divides.

    + devices: its PCI device ids; models: parts of its name as nvidia-smi has it, where that does
      not say how much memory it has
    + compute: its compute slices
    """

    name: str
    devices: tuple[int, ...]
    profiles: tuple[Profile, ...]
    compute: int = 7
    models: tuple[str, ...] = ()

    @property
    def gigabytes(self) -> int:
        """Its memory, as its largest profile names it."""
        return max(size(item.name)[1] for item in self.profiles)

    @property
    def counts(self) -> Counts:
        """Its profiles, and how many of each it can have."""
        return {item.name: item.most for item in self.profiles}

    def profile(self, name: str) -> Profile | None:
        """Its profile of this name."""
        return next((item for item in self.profiles if item.name == name), None)

    def fits(self, counts: Mapping[str, int]) -> bool:
        """Whether a GPU can have so many instances of these profiles, which it has, at once."""
        profiles = [self.profile(name) for name, count in counts.items() for _ in range(count)]
        known_profiles = sorted((item for item in profiles if item), key=lambda item: -item.memory)
        if any(count > self.counts.get(name, count) for name, count in counts.items()):
            return False
        return sum(item.compute for item in known_profiles) <= self.compute and _placed(
            known_profiles, frozenset()
        )


def _placed(profiles: Sequence[Profile], occupied: frozenset[int]) -> bool:
    if not profiles:
        return True
    first, remaining = profiles[0], profiles[1:]
    for start in first.starts:
        slices = frozenset(range(start, start + first.memory))
        if not slices & occupied and _placed(remaining, occupied | slices):
            return True
    return False


def _of_seven(*gigabytes: int) -> tuple[Profile, ...]:
    """Profiles of a GPU with 7 compute and 8 memory slices, by their memory: 1g, 1g with two
    slices of memory, 2g, 3g, 4g, 7g."""
    base, wide, two, three, four, seven = gigabytes
    starts = tuple(range(7))
    return (
        Profile(f"1g.{base}gb", 1, 1, starts, 7),
        Profile(f"1g.{base}gb+me", 1, 1, starts, 1),
        Profile(f"1g.{wide}gb", 1, 2, (0, 2, 4, 6), 4),
        Profile(f"2g.{two}gb", 2, 2, (0, 2, 4), 3),
        Profile(f"3g.{three}gb", 3, 4, (0, 4), 2),
        Profile(f"4g.{four}gb", 4, 4, (0,), 1),
        Profile(f"7g.{seven}gb", 7, 8, (0,), 1),
    )


_A30 = (
    Profile("1g.6gb", 1, 1, (0, 1, 2, 3), 4),
    Profile("1g.6gb+me", 1, 1, (0, 1, 2, 3), 1),
    Profile("2g.12gb", 2, 2, (0, 2), 2),
    Profile("2g.12gb+me", 2, 2, (0, 2), 1),
    Profile("4g.24gb", 4, 4, (0,), 1),
)

# media and graphics engines are dealt out apart: +me has some, +me.all has all, -me none
_RTX_PRO_6000 = (
    *(Profile(f"1g.24gb{kind}", 1, 1, (0, 1, 2, 3), 4) for kind in ("", "+gfx", "-me")),
    *(Profile(f"1g.24gb{kind}", 1, 1, (0, 1, 2, 3), 1) for kind in ("+me", "+me.all")),
    *(Profile(f"2g.48gb{kind}", 2, 2, (0, 2), 2) for kind in ("", "+gfx", "-me")),
    Profile("2g.48gb+me.all", 2, 2, (0, 2), 1),
    *(Profile(f"4g.96gb{kind}", 4, 4, (0,), 1) for kind in ("", "+gfx")),
)

CARDS = (
    Card("A30", (0x20B7,), _A30, compute=4, models=("A30",)),
    Card("A100 or A800 40GB", (0x20B0, 0x20B1, 0x20F1, 0x20F6), _of_seven(5, 10, 10, 20, 20, 40)),
    Card("A100 or A800 80GB", (0x20B2, 0x20B5, 0x20F3, 0x20F5), _of_seven(10, 20, 20, 40, 40, 80)),
    Card(
        "H100 or H800 80GB", (0x2330, 0x2331, 0x2322, 0x2324), _of_seven(10, 20, 20, 40, 40, 80),
        models=("H100 PCIe", "H800 PCIe"),
    ),
    Card(
        "H100 or H800 NVL", (0x2321, 0x233A), _of_seven(12, 24, 24, 47, 47, 94),
        models=("H100 NVL", "H800 NVL"),
    ),
    Card(
        "H100 96GB, H20, GH200 or PG506", (0x2342, 0x233D, 0x2329, 0x20B6),
        _of_seven(12, 24, 24, 48, 48, 96), models=("GH200 480GB", "H20"),  # 480 GB are its CPU's
    ),
    Card("H200", (0x2335, 0x233B), _of_seven(18, 35, 35, 71, 71, 141), models=("H200",)),
    Card("GH200 144GB", (0x2348,), _of_seven(18, 36, 36, 72, 72, 144), models=("GH200 144G",)),
    Card("B200", (0x2901,), _of_seven(23, 45, 45, 90, 90, 180), models=("B200",)),
    Card("GB200", (0x2941,), _of_seven(23, 47, 47, 93, 93, 186), models=("GB200",)),
    Card("B300", (0x3182,), _of_seven(34, 67, 67, 135, 135, 269), models=("B300",)),
    Card("GB300", (0x31C2,), _of_seven(35, 70, 70, 139, 139, 278), models=("GB300",)),
    Card("RTX PRO 6000", (0x2BB5,), _RTX_PRO_6000, compute=4, models=("RTX PRO 6000",)),
)  # fmt: skip


def card(device: int) -> Card | None:
    """The model with this PCI device id; None: MIG cannot divide it, or it is not in the table."""
    return next((item for item in CARDS if device in item.devices), None)


def of_model(name: str) -> Card | None:
    """The model whose name nvidia-smi gives, e.g. `NVIDIA GB200`; the longest part that fits."""
    parts = {part: item for item in CARDS for part in item.models if part in name}
    return parts[max(parts, key=len)] if parts else None


def size(profile: str) -> tuple[int, int]:
    """Compute slices and gigabytes of a profile, by its name; (0, 0) for another text."""
    match = _PROFILE.match(profile)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def is_layout(name: str) -> bool:
    """Whether a name is one of the MIG manager's own layouts, of whatever model."""
    return name in (DISABLED, BALANCED) or is_of_one_profile(name)


def is_of_one_profile(layout: str) -> bool:
    """Whether a layout divides each GPU by one profile, such as `all-1g.10gb`."""
    return layout.startswith("all-") and _PROFILE.match(layout.removeprefix("all-")) is not None


def of_all(name: str) -> Iterator[tuple[Card, Counts]]:
    """What a layout of the MIG manager's own makes of each model of the table that can have it."""
    for item in CARDS:
        if (counts := made_of(name, item.counts)) is not None:
            yield item, counts


def grouped_counts(layout: str) -> list[tuple[Counts, list[int]]]:
    """What a layout makes, and the PCI device ids of the models of which it makes that."""
    groups: list[tuple[Counts, list[int]]] = []
    for item, counts in of_all(layout):
        group_ids = next((ids for group_counts, ids in groups if group_counts == counts), None)
        if group_ids is None:
            groups.append((counts, [*item.devices]))
        else:
            group_ids += item.devices
    return groups


def file_counts(layout: str, device: int) -> Counts | None:
    """What a layout makes of a GPU in a file of ours; None: the file has nothing for it.

    As the operator's, it names no devices where all models are divided alike.
    """
    groups = grouped_counts(layout)
    return next((counts for counts, ids in groups if len(groups) == 1 or device in ids), None)


def made_of(name: str, counts: Counts) -> Counts | None:
    """The instances that a layout of the MIG manager's own makes of a GPU; None: it has none such.

    + name: `all-disabled`, `all-balanced`, or `all-` and a profile, whose + is written as a dot
    + counts: the GPU's profiles
    """
    if name == DISABLED:
        return {}
    if name == BALANCED:
        return _balanced(counts)
    profiles = (item for item in counts if name == "all-" + item.replace("+", "."))
    return next(({item: counts[item]} for item in profiles), None)


def _balanced(counts: Counts) -> Counts | None:
    """The layout `all-balanced` of mig-parted v0.15.0 (pkg/mig/builder/balanced.go): of each
    size the profile that fits most often, without attributes.
    """
    plain = [item for item in counts if re.fullmatch(_PROFILE, item)]
    maximum = max((size(item)[0] for item in plain), default=0)
    formula = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}.get(maximum, {})
    balanced = {}
    for slices, count in formula.items():
        candidates = [item for item in plain if size(item)[0] == slices]
        if not candidates:
            return None
        balanced[max(candidates, key=lambda item: counts[item])] = count
    return balanced or None
