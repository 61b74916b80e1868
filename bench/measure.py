"""Runs one side's command on the controller, and takes what it cost."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from bench import accounting, machines, sessions
from bench.network import Controller
from bench.site import Outcome, Side, Site
from lab.state import Lab, LabError

TIMEOUT_S = 3600


@dataclass(frozen=True)
class Measured:
    """What a run of a side cost.

    + cpu_s, peak_mib: of all processes on the controller
    + hosts_cpu_s: of all hosts; they share this computer's cores
    + sent, received: bytes on the controller's link
    + commands: that the machines' SSH servers started
    """

    seconds: float
    cpu_s: float
    peak_mib: float
    hosts_cpu_s: float
    sent: int
    received: int
    commands: int
    outcome: Outcome


def run(lab: Lab, controller: Controller, side: Side, site: Site) -> Measured:
    """Run the side once for the site.

    It starts without open connections, and leaves none. Raises `LabError` when it fails.
    """
    work = work_folder(site, side)
    work.mkdir(parents=True, exist_ok=True)
    command = side.command(site, work)
    targets = lab.machines[: len(site.hosts)]
    before, since = controller.traffic(), time.time()
    hosts_before = machines.cpu_s(lab, len(targets))
    with accounting.group(f"gpuboot-measured-{lab.name}") as group:
        full = [*group.enter(), *controller.prefix(), *command.argv]
        environment = {**os.environ, **command.env}
        started = time.monotonic()
        with (work / "stdout").open("w") as out, (work / "stderr").open("w") as err:
            completed = subprocess.run(
                full, cwd=command.cwd, env=environment, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, timeout=TIMEOUT_S,
            )  # fmt: skip
        seconds = time.monotonic() - started
        usage = group.usage()
        hosts_cpu_s = machines.cpu_s(lab, len(targets)) - hosts_before
    traffic = controller.traffic().since(before)
    outcome = _outcome(side, work, completed.returncode)
    counted = sessions.count(lab, targets, since)
    return Measured(
        seconds, usage.cpu_s, usage.peak_mib, hosts_cpu_s, traffic.sent, traffic.received,
        counted, outcome,
    )  # fmt: skip


def work_folder(site: Site, side: Side) -> Path:
    """The side's own folder for these machines."""
    return site.folder / side.name


def _outcome(side: Side, work: Path, code: int) -> Outcome:
    """The side's account of its run. Raises `LabError` for a run that failed."""
    stdout, stderr = (work / "stdout").read_text(), (work / "stderr").read_text()
    try:
        outcome = side.outcome(stdout, stderr, work)
    except ValueError as error:
        outcome = Outcome({}, {side.name: str(error)})
    if code != 0 or outcome.failed:
        reasons = "; ".join(f"{host}: {text}" for host, text in outcome.failed.items())
        tail = "\n".join((stdout + stderr).strip().splitlines()[-15:])
        raise LabError(f"{side.title} failed with status {code}: {reasons}\n{tail}\nAll: {work}")
    return outcome


def difference(outcome: Outcome) -> str:
    """What a side changed where it had nothing to change; "" if it changed nothing."""
    by_change: dict[str, list[str]] = {}
    for host, names in outcome.changed.items():
        for name in names:
            by_change.setdefault(name, []).append(host)
    return "; ".join(f"{name} ({', '.join(hosts)})" for name, hosts in by_change.items())
