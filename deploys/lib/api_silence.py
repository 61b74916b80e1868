"""An API server that does not answer: what its host says of it, for who waits."""

from __future__ import annotations

from dataclasses import replace

from pyinfra.api.host import Host

from gpuboot.kubernetes.readiness import Progress
from gpuboot.kubernetes.stuck import of_control_plane


def explained(look: Progress, lacks: list[tuple[str, str]], leader: Host) -> Progress:
    """A look at an API server that does not answer, with the reasons.

    + lacks: as the fact `ApiServerLacks` of its host tells
    """
    stuck = of_control_plane(lacks, leader.name)
    return replace(look, text="; ".join([look.text, *map(str, stuck)]), stuck=stuck)
