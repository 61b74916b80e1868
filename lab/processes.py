"""Long-running parts of a lab: machines, the mirror's web server and the alert receivers.

Each runs under `lab/nspawn/supervise.sh`, apart from the terminal, in cgroups of its own. Its
folder holds `supervisor.pid`, `main.pid`, `cgroups` and `console.log`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from lab.host import NSPAWN_DIR, run
from lab.state import LabError

_SUPERVISE = NSPAWN_DIR / "supervise.sh"


def start(unit: str, folder: Path, command: list[str]) -> None:
    """Start `command` as the part `unit`, unless it runs. `folder` takes its files."""
    if is_running(unit, folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("supervisor.pid", "main.pid"):
        (folder / name).unlink(missing_ok=True)
    full = ["bash", str(_SUPERVISE), unit, str(folder), *command]
    log = folder / "console.log"
    if _has_systemd():
        properties = ["Delegate=yes", "KillMode=mixed", f"StandardOutput=append:{log}"]
        properties += [f"StandardError=append:{log}", "TasksMax=infinity"]
        options = [f"--property={value}" for value in properties]
        run(["systemd-run", f"--unit=gpuboot-{unit}", "--collect", "--quiet", *options, *full])
    else:
        with log.open("ab") as stream:
            subprocess.Popen(
                full,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    _wait_for_start(unit, folder)


def _wait_for_start(unit: str, folder: Path) -> None:
    deadline = time.monotonic() + 10
    while not (folder / "main.pid").exists():
        if time.monotonic() > deadline:
            raise LabError(f"{unit} does not start; see {folder / 'console.log'}")
        time.sleep(0.05)


def wait_for_port(unit: str, folder: Path, address: str, port: int) -> None:
    """Return when the part takes connections. Raises `LabError` when it does not within 20 s."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and is_running(unit, folder):
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
            return
        time.sleep(0.05)
    raise LabError(f"{unit} does not listen on {address}:{port}; see {folder / 'console.log'}")


def is_running(unit: str, folder: Path) -> bool:
    """Whether the part's supervisor lives."""
    return running_pid(folder / "supervisor.pid", unit) is not None


def running_pid(pidfile: Path, marker: str) -> int | None:
    """The process that `pidfile` names, if it lives and `marker` is an argument of its command.

    Process ids are used again after a reboot of the host: the number alone proves nothing.
    """
    try:
        pid = int(pidfile.read_text())
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (OSError, ValueError):
        return None
    return pid if marker in arguments else None


def kill(unit: str, folder: Path) -> None:
    """End the part at once, as cutting its power would, and remove its cgroups.

    Raises `LabError` when something in its cgroups survives ten seconds.
    """
    supervisor = running_pid(folder / "supervisor.pid", unit)
    if supervisor is not None:
        _signal(supervisor)
    folders = _cgroups(folder, unit)
    deadline = time.monotonic() + 10
    while pids := _members(folders):
        if time.monotonic() > deadline:
            raise LabError(f"{unit}: processes {sorted(pids)} do not end")
        for pid in pids:
            _signal(pid)
        time.sleep(0.05)
    for cgroup in folders:
        _remove_tree(cgroup)
    for name in ("supervisor.pid", "main.pid", "cgroups"):
        (folder / name).unlink(missing_ok=True)


def members(unit: str, folder: Path) -> set[int]:
    """The part's processes."""
    return _members(_cgroups(folder, unit))


def _cgroups(folder: Path, unit: str) -> list[Path]:
    """The part's cgroup folders, its supervisor's included."""
    try:
        lines = (folder / "cgroups").read_text().split()
    except FileNotFoundError:
        return []
    paths = [Path(line) for line in lines]
    paths += [path.with_name(f"{unit}-supervisor") for path in paths]
    # A damaged file must never make us kill anything else: the last name is always the unit's.
    return [path for path in paths if path.is_dir() and path.name.startswith(unit)]


def _members(folders: list[Path]) -> set[int]:
    pids: set[int] = set()
    for folder in folders:
        # os.walk passes over groups that vanish while it looks, as those of dying pods do
        for path, _, _ in os.walk(folder):
            with contextlib.suppress(OSError):
                pids.update(int(pid) for pid in Path(path, "cgroup.procs").read_text().split())
    return pids - {0, os.getpid()}


def _remove_tree(cgroup: Path) -> None:
    """Remove a cgroup and those below it, and the "gpuboot" above it when it was the last."""
    for _ in range(20):
        for path, _, _ in os.walk(cgroup, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(path)
        if not cgroup.exists():
            break
        time.sleep(0.1)  # the kernel needs a moment after the last process
    else:
        raise LabError(f"cgroup {cgroup} cannot be removed")
    if cgroup.parent.name == "gpuboot":
        with contextlib.suppress(OSError):
            cgroup.parent.rmdir()


def _signal(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _has_systemd() -> bool:
    return Path("/run/systemd/system").is_dir() and shutil.which("systemd-run") is not None
