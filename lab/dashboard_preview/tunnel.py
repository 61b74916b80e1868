"""The lab's Prometheus from this host: through ssh to a machine that reaches Services."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.charts.monitoring_values import STACK
from lab import machines
from lab.dashboard_preview.draw import draw
from lab.settings import settings as lab_settings
from lab.state import Lab, LabError

WAIT_S = 15


@contextlib.contextmanager
def prometheus(lab: Lab) -> Iterator[str]:
    """Prometheus' address, as long as the context lasts.

    Raises `LabError` when the cluster has none or the machine cannot be reached.
    """
    monitoring = parse_settings(lab_settings(lab.name)).monitoring
    service = f"{STACK}-prometheus"
    address = machines.ssh(
        lab,
        lab.leader,
        "kubectl --kubeconfig /etc/kubernetes/admin.conf get service"
        f" -n {monitoring.namespace} {service} -o jsonpath='{{.spec.clusterIP}}'",
    ).strip()
    port = _free_port()
    command = machines.ssh_command(lab, lab.leader)
    forward = ["-N", "-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{port}:{address}:9090"]
    tunnel = subprocess.Popen([*command[:-1], *forward, command[-1]], stdin=subprocess.DEVNULL)
    try:
        _wait(port, tunnel)
        yield f"http://127.0.0.1:{port}"
    finally:
        tunnel.terminate()
        tunnel.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int, tunnel: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until and tunnel.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise LabError("no way to Prometheus: ssh did not forward the port")


def draw_lab(lab: Lab, out: Path, hours: float) -> Iterator[Path]:
    """Draw the dashboards of a lab; yields the files."""
    with prometheus(lab) as url:
        source = f"lab {lab.name}, whose GPUs are SIMULATED"
        yield from draw(parse_settings(lab_settings(lab.name)), url, out, hours, source=source)
