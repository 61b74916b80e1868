"""Which MIG profiles a GPU model has, how many of each fit, and which fit beside each other.

Profiles and counts: NVIDIA's MIG User Guide, "Supported MIG Profiles"; PCI device ids, and the
models that no table of the guide has: mig-parted@1400787, deployments/systemd/config-default.yaml.
Placements are those that `nvidia-smi mig -lgipp` prints, in memory slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


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
    """A GPU model that MIG divides. devices: its PCI device ids; compute: its compute slices"""

    name: str
    devices: tuple[int, ...]
    profiles: tuple[Profile, ...]
    compute: int = 7

    def profile(self, name: str) -> Profile | None:
        """Its profile of this name."""
        return next((item for item in self.profiles if item.name == name), None)

    def fits(self, counts: Mapping[str, int]) -> bool:
        """Whether a GPU can have so many instances of these profiles, which it has, at once."""
        wanted = [self.profile(name) for name, count in counts.items() for _ in range(count)]
        known = sorted((item for item in wanted if item), key=lambda item: -item.memory)
        if any(count > 1 and name.endswith("+me") for name, count in counts.items()):
            return False
        return sum(item.compute for item in known) <= self.compute and _placed(known, frozenset())


def _placed(profiles: Sequence[Profile], taken: frozenset[int]) -> bool:
    if not profiles:
        return True
    first, rest = profiles[0], profiles[1:]
    for start in first.starts:
        slices = frozenset(range(start, start + first.memory))
        if not slices & taken and _placed(rest, taken | slices):
            return True
    return False


def _of_seven(*gigabytes: int) -> tuple[Profile, ...]:
    """Profiles of a GPU with 7 compute and 8 memory slices, by their memory: 1g, 1g with two
    slices of memory, 2g, 3g, 4g, 7g."""
    one, wide, two, three, four, seven = gigabytes
    each = tuple(range(7))
    return (
        Profile(f"1g.{one}gb", 1, 1, each, 7),
        Profile(f"1g.{one}gb+me", 1, 1, each, 1),
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

CARDS = (
    Card("A30", (0x20B7,), _A30, compute=4),
    Card("A100 or A800 40GB", (0x20B0, 0x20B1, 0x20F1, 0x20F6), _of_seven(5, 10, 10, 20, 20, 40)),
    Card("A100 or A800 80GB", (0x20B2, 0x20B5, 0x20F3, 0x20F5), _of_seven(10, 20, 20, 40, 40, 80)),
    Card("H100 or H800 80GB", (0x2330, 0x2331, 0x2322, 0x2324), _of_seven(10, 20, 20, 40, 40, 80)),
    Card("H100 or H800 NVL", (0x2321, 0x233A), _of_seven(12, 24, 24, 47, 47, 94)),
    Card("H100 96GB, H20 or GH200", (0x2342, 0x233D, 0x2329), _of_seven(12, 24, 24, 48, 48, 96)),
    Card("H200", (0x2335, 0x233B), _of_seven(18, 35, 35, 71, 71, 141)),
    Card("GH200 144GB", (0x2348,), _of_seven(18, 36, 36, 72, 72, 144)),
    Card("B200", (0x2901,), _of_seven(23, 45, 45, 90, 90, 180)),
    Card("GB200", (0x2941,), _of_seven(24, 47, 47, 95, 95, 189)),
)


def card(device: int) -> Card | None:
    """The model with this PCI device id; None: MIG cannot divide it, or nobody told us how."""
    return next((item for item in CARDS if device in item.devices), None)


def of_all(name: str) -> Iterator[tuple[Card, dict[str, int]]]:
    """What a layout of the MIG manager's own makes of each model that can have it.

    + name: `all-disabled`, `all-balanced`, or `all-` and a profile, whose + is written as a dot
    """
    for item in CARDS:
        if name == "all-disabled":
            yield item, {}
        elif name == "all-balanced":
            yield item, _balanced(item)
        for profile in item.profiles:
            if name == "all-" + profile.name.replace("+", "."):
                yield item, {profile.name: profile.most}


def _balanced(item: Card) -> dict[str, int]:
    """Two of its smallest instances, and one of each larger size that fits beside them."""
    plain = [one.name for one in item.profiles if "+" not in one.name]
    if item.compute == 4:
        return {plain[0]: 2, plain[1]: 1}
    return {plain[0]: 2, plain[2]: 1, plain[3]: 1}
