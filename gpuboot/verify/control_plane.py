"""Evidence of what a cluster stands on: its control planes' certificates, and backups of etcd."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuboot.cluster.backup import Backups
from gpuboot.cluster.node_certificates import Certificate


@dataclass(frozen=True, kw_only=True)
class ControlPlane:
    """What a control-plane node says of what the cluster stands on.

    + error: why it could not be read; all else is then empty
    + clock: that moment, seconds since 1970
    """

    node: str
    error: str = ""
    certificates: tuple[Certificate, ...] = ()
    backups: Backups = field(default_factory=Backups)
    clock: float = 0.0
