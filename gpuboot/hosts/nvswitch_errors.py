"""What tells node-exporter of fatal errors of NVSwitches: a program and its timer.

DCGM's exporter sees GPUs alone, and an SXid stands in the kernel log only.
"""

from gpuboot.templates import render

PROGRAM = "/usr/local/sbin/gpuboot-nvswitch-errors"
TIMER = "gpuboot-nvswitch-errors.timer"
METRIC = "gpuboot_nvswitch_fatal_timestamp_seconds"
_SERVICE = "/etc/systemd/system/gpuboot-nvswitch-errors.service"
_TIMER = f"/etc/systemd/system/{TIMER}"


def program() -> str:
    """The program's text, a shell script."""
    return render("nvswitch/errors.sh")


def units(node: str, metrics: str) -> dict[str, str]:
    """Path -> text of its units.

    + node: its Kubernetes name; metrics: folder that node-exporter reads
    """
    return {
        _SERVICE: render("nvswitch/errors.service.j2", program=PROGRAM, node=node, metrics=metrics),
        _TIMER: render("nvswitch/errors.timer"),
    }


def traces(metrics: str) -> tuple[str, ...]:
    """All files of ours on a host. + metrics: folder that node-exporter reads"""
    return (PROGRAM, _SERVICE, _TIMER, f"{metrics}/gpuboot_nvswitch.prom")
