"""Faults during a verification: what breaks, and what the report must say of it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.diagnose_faults import Step, on, replicas, served_instead

_GARBAGE = (
    "HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n\\x00\\xff{]DCGM_FI_DEV_GPU_TEMP{gpu=\\n"
)
_LOGS = "/var/log"
_DATE = "/usr/local/bin/date"
_STOPPED = "/var/lib/containerd /var/log"


@dataclass(frozen=True)
class GpuFault:
    """What is wrong with one simulated GPU, all at the same time as the others.

    + key: key and value of `gpu-sim set`
    + links: of which one at least has to fail for this GPU; none: it has to be proven
    """

    machine: str
    gpu: int
    key: str
    links: frozenset[str]


GPU_FAULTS = (
    GpuFault("gpu1", 1, "lost 1", frozenset({"nvidia-smi"})),
    GpuFault("gpu1", 0, "xid 31", frozenset()),  # a program's own fault
    GpuFault("gpu2", 0, "xid 79", frozenset({"health"})),
    GpuFault("gpu2", 1, "ecc_dbe 1", frozenset({"health"})),
    GpuFault("gpu2", 2, "row_remap_failure 1", frozenset({"health"})),
    GpuFault("gpu2", 3, "hw_thermal 1", frozenset({"health"})),
)


@dataclass(frozen=True)
class Day:
    """Something else that goes wrong.

    + node: whose findings do not pass; "": the cluster's
    + link: of the proof chain, at which they do not
    + message: words of the detail or remedy that a person needs, as a pattern
    + other_nodes: further nodes that may fail for the same reason
    + code: 1 where findings fail; 2 where nobody can tell, which is no pass
    + simulated: what stands in for the real fault; "" where it is the real one
    """

    name: str
    node: str
    link: str
    message: str
    inject: Step
    undo: Step
    other_nodes: frozenset[str] = frozenset()
    code: int = 1
    simulated: str = ""

    def __str__(self) -> str:
        return self.name


def _exporter(signal: str) -> str:
    return f"pkill -{signal} -f '[d]cgm-exporter'"


def _again_and_again(signal: str, unit: str) -> str:
    """What the kubelet starts anew meanwhile gets it as well."""
    return (
        f"systemd-run -q --unit {unit} sh -c "
        f'"while :; do {_exporter(signal)}; sleep 0.3; done"; sleep 20'
    )


DAYS = (
    Day(
        "exporter killed again and again",
        "gpu2",
        "exporter",
        "connection refused",
        on("gpu2", _again_and_again("KILL", "kills")),
        on("gpu2", "systemctl stop kills"),
    ),
    Day(
        "exporter hangs",
        "gpu2",
        "exporter",
        "no answer within|error trying to reach service",
        on("gpu2", _again_and_again("STOP", "hangs")),
        on("gpu2", f"systemctl stop hangs; {_exporter('CONT')}"),
    ),
    Day(
        "exporter serves garbage",
        "gpu2",
        "exporter",
        "EOF",
        *served_instead("gpu2", _GARBAGE),
    ),
    Day(
        "Prometheus down",
        "gpu1",
        "prometheus",
        "no endpoints available",
        replicas(0),
        replicas(1),
        other_nodes=frozenset({"", "gpu2"}),
        code=2,
    ),
    Day(
        "clock ten minutes off",
        "gpu1",
        "clock",
        "s ahead of this machine",
        on(
            "gpu1",
            f'printf \'#!/bin/sh\\nexec /bin/date -d "+600 seconds" "$@"\\n\' >{_DATE}; '
            f"chmod 755 {_DATE}",
        ),
        on("gpu1", f"rm {_DATE}"),
        simulated="the lab's machines have one clock: a program `date` tells another time",
    ),
    Day(
        "disk full",
        "gpu1",
        "filesystems",
        "/var/log is full",
        on(
            "gpu1",
            f"mount -t tmpfs -o size=2m tmpfs {_LOGS}; head -c 3m /dev/zero >{_LOGS}/full; true",
        ),
        on("gpu1", f"umount -l {_LOGS}"),
        simulated="a small tmpfs over /var/log: machines share the computer's disk",
    ),
    Day(
        "read-only root",
        "gpu1",
        "filesystems",
        "/var/lib/containerd is read-only",
        on(
            "gpu1",
            f"for folder in {_STOPPED}; do mount --bind $folder $folder && "
            "mount -o remount,ro,bind $folder; done",
        ),
        on("gpu1", f"for folder in {_STOPPED}; do umount -l $folder; done"),
        simulated="what containers are made of is read-only; the machine's root is an overlay",
    ),
)
