"""What is on a host beside packages, and what a container lacks that a node needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuboot.hosts.fact_output import Fields


@dataclass(frozen=True)
class Software:
    """Programs of nobody's package.

    + shadows: name of a program -> where it is found before the package's
    + units: name of a service -> the program that it starts, and the unit's file
    + snaps: of Docker and Kubernetes
    + lacks: of root (the machine's own), kmsg, sysctl, modules, where the machine is a container
    """

    shadows: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    snaps: tuple[str, ...] = ()
    lacks: frozenset[str] = frozenset()


def parse(values: Fields) -> Software:
    """What `deploys/parts/node/software.sh` printed, be it among other lines."""
    shadows: dict[str, str] = {}
    for name, path in values.words("shadow", 2):
        shadows.setdefault(name, path)
    return Software(
        shadows,
        {name: (program, file) for name, program, file in values.words("unit_program", 3)},
        tuple(dict.fromkeys(values.all("snap"))),
        frozenset(values.all("container_lacks")),
    )
