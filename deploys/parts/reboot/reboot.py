"""Reboot that waits for the machine to be another boot, however slowly it stops or starts.

pyinfra's `server.reboot` fails when a machine stops more slowly than its delay: it reconnects to
the dying system. Here only a new boot id counts.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paramiko import SSHException
from pyinfra import logger
from pyinfra.api.exceptions import ConnectError, PyinfraError
from pyinfra.api.host import Host

from deploys.engine import privilege
from deploys.engine.commands import failure
from deploys.engine.shell import run_command
from deploys.engine.spans import waiting
from gpuboot.cluster.kubeadm import CRICTL
from gpuboot.hosts import reboots

POLL_S = 1.0
_COMMAND_TIMEOUT_S = 20
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# A machine that stops ends etcd and the API server at once; the API server then cannot take itself
# out of the Service `kubernetes`, and pods are sent to it for up to 15 s. So it ends before etcd,
# and before the kubelet could start it again.
_STOP_API = (
    "if test -e /etc/kubernetes/manifests/kube-apiserver.yaml; then "
    "systemctl stop kubelet; "
    f'timeout 60 sh -c "{CRICTL} ps -q --name ^kube-apiserver | '
    f'xargs -r {CRICTL} stop --timeout 30"; fi'
)
_CONNECTION_ERRORS = (OSError, EOFError, SSHException, ConnectError, TimeoutError, PyinfraError)


class RebootError(Exception):
    """The machine may not be rebooted from here, or did not come back in time."""


class RebootRefusedError(RebootError):
    """The machine was not rebooted: this runs on it, or it does not tell which boot it is."""


def reboot(host: Host, reason: str, timeout_s: int | None) -> str:
    """Reboot a host and wait until it answers as a new boot and has started its units.

    For a `FunctionCommand`; give the operation `_serial=True` so that one host at a time is away.

    + reason: said on the terminal
    + timeout_s: `settings.driver.reboot_timeout_s`: how long the host may take, from the reboot
      command to its answer; None: by its memory (`gpuboot.hosts.reboots`)

    Returns the new boot's id. Raises `RebootError` when it does not come back, and without a reboot
    when the host is the machine that this runs on: the run would end with it, and so would
    whatever else runs there.
    """
    before = _boot_id_to_leave(host, reason)
    limit_s = reboots.timeout_s(timeout_s, _run(host, "grep MemTotal /proc/meminfo"))
    _say(host, f"rebooting: {reason}")
    started = time.monotonic()
    # in the background, so that the command can answer before sshd is stopped
    _run(host, f"nohup sh -c 'sleep 1; {_STOP_API}; systemctl reboot || reboot' >/dev/null 2>&1 &")
    last_notice = started
    with waiting(f"{host.name} after its reboot"), _without_tracebacks():
        while time.monotonic() - started < limit_s:
            time.sleep(POLL_S)
            if time.monotonic() - last_notice > 30:
                last_notice = time.monotonic()
                elapsed_s = last_notice - started
                _say(host, f"waiting for it to come back ({elapsed_s:.0f} of {limit_s} s)")
            _reconnect(host)
            now = _boot_id(host)
            if now and now != before:
                _settle(host, limit_s - (time.monotonic() - started))
                _say(host, f"is back after {time.monotonic() - started:.0f} s")
                return now
    raise RebootError(
        failure(
            f"{host.name} did not come back within {limit_s} s",
            "look at its console, then run again (driver.reboot_timeout_s sets the time)",
        )
    )


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Silence paramiko's log of broken connections in the block."""
    log = logging.getLogger("paramiko.transport")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _boot_id_to_leave(host: Host, reason: str) -> str:
    """The boot id before the reboot. Raises `RebootRefusedError` where it must not be tried."""
    before = _boot_id(host)
    if not before:
        raise RebootRefusedError(
            f"{host.name} does not tell its boot id, so a reboot could not be seen"
        )
    if before == BOOT_ID.read_text().strip():
        raise RebootRefusedError(
            failure(
                f"{reason}, and {host.name} is the machine that you run this from",
                "reboot it yourself, then run again: the run goes on from there",
            )
        )
    return before


def _settle(host: Host, left_s: float) -> None:
    """Wait for the boot to end: units that phases look at may still be starting."""
    wait = max(int(left_s), 10)
    _run(host, f"timeout {wait} systemctl is-system-running --wait", timeout_s=wait + 10)


def _reconnect(host: Host) -> None:
    try:
        host.disconnect()
    except _CONNECTION_ERRORS:
        host.connected = False
    try:
        host.connect(show_errors=False)
        privilege.prepare_askpass(host)
    except _CONNECTION_ERRORS:
        host.connected = False


def _boot_id(host: Host) -> str:
    return _run(host, f"cat {BOOT_ID}") if host.connected else ""


def _run(host: Host, command: str, timeout_s: int = _COMMAND_TIMEOUT_S) -> str:
    """The command's output; "" when it failed or the connection went away."""
    try:
        result = run_command(host, command, _timeout=timeout_s, **privilege.become_arguments(host))
    except _CONNECTION_ERRORS:
        host.connected = False
        return ""
    return result.stdout.strip() if result.ok else ""


def _say(host: Host, text: str) -> None:
    logger.info(f"[{host.name}] {text}")
