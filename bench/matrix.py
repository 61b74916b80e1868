"""What is measured: cells of a scenario, a number of machines, and a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from bench.network import CONDITIONS

Scenario = Literal["nothing", "line", "fresh"]
SCENARIOS: dict[Scenario, str] = {
    "nothing": "nothing to do",
    "line": "one changed line",
    "fresh": "fresh converge",
}
HOSTS = (1, 2, 8, 32)
LAN = "0.2ms"


@dataclass(frozen=True, order=True)
class Cell:
    """A measurement, written `SCENARIO/HOSTS/NETWORK`, as in `nothing/8/20ms`."""

    scenario: Scenario
    hosts: int
    network: str = LAN

    def __str__(self) -> str:
        return f"{self.scenario}/{self.hosts}/{self.network}"

    @property
    def title(self) -> str:
        """The title for people."""
        hosts = f"{self.hosts} host{'s' if self.hosts > 1 else ''}"
        return f"{SCENARIOS[self.scenario]}, {hosts}, {CONDITIONS[self.network].title}"


# What a reader wants to know first comes first: the end may find no time left.
DEFAULT = (
    Cell("nothing", 1),
    Cell("line", 1),
    Cell("nothing", 1, "80ms"),
    Cell("nothing", 2),
    Cell("nothing", 8),
    Cell("nothing", 1, "20ms"),
    Cell("nothing", 1, "20ms-loss"),
    Cell("nothing", 32),
    Cell("fresh", 1),
    Cell("fresh", 8),
)
# as many machines as a lab holds, where playbooks would take hours: gpuboot alone
MANY = 48
GPUBOOT_ONLY = {Cell("fresh", MANY): 1, Cell("nothing", MANY): 5}


def full() -> tuple[Cell, ...]:
    """Every cell: first those of the default, then the others, those with few machines first."""
    every = (
        Cell(scenario, hosts, network)
        for hosts in HOSTS
        for scenario in SCENARIOS
        for network in CONDITIONS
    )
    return (*DEFAULT, *(cell for cell in every if cell not in DEFAULT))


def parse(text: str) -> tuple[Cell, ...]:
    """Cells from `nothing/1/0.2ms,fresh/2`; without a network the local one is meant.

    Raises `ValueError` that names what there is.
    """
    return tuple(dict.fromkeys(_parse(part.strip()) for part in text.split(",")))


def _parse(text: str) -> Cell:
    scenario, _, remainder = text.partition("/")
    hosts, _, network = remainder.partition("/")
    network = network or LAN
    if scenario not in get_args(Scenario) or network not in CONDITIONS or not hosts.isdigit():
        raise ValueError(
            f"{text!r} is no cell: write SCENARIO/HOSTS/NETWORK, of {', '.join(SCENARIOS)}, "
            f"a number and {', '.join(CONDITIONS)}, e.g. nothing/8/20ms"
        )
    return Cell(cast(Scenario, scenario), int(hosts), network)


def turns(sides: Sequence[str], round_number: int) -> list[str]:
    """The order in which the sides run in a round: each comes first in its turn."""
    first = round_number % len(sides)
    return [*sides[first:], *sides[:first]]
