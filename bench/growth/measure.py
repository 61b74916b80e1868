"""Runs gpuboot with nothing to do on simulated hosts, and takes what that costs the controller."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench import machines
from bench.growth import recording, servers
from bench.growth.recording import Host, Recording
from bench.growth.servers import Counted, Servers
from bench.machines import DELIVERED, GPUS
from bench.measure import difference
from bench.results import ROOT, Results
from bench.runner import converged
from bench.settings import settings
from bench.sides import Gpuboot
from bench.site import Site
from gpuboot.verify.report.report_model import POINTER
from lab.build.progress import Progress
from lab.state import Lab, LabError

SIZES = (2, 10, 48, 100, 250, 500, 1000)
MOST_RUNS = 5
KIND = "growth"
_POD_CIDR = "10.240.0.0/12"  # room for 4096 nodes; the default has it for 256


@dataclass(frozen=True)
class Run:
    """A run. + peak_mib: resident memory; servers_cpu_s: of all that stands for the hosts"""

    hosts: int
    seconds: float
    cpu_s: float
    peak_mib: float
    servers_cpu_s: float
    connections: int
    connections_at_once: int
    commands: int


@dataclass(frozen=True)
class _RunResult:
    seconds: float
    cpu_s: float
    peak_mib: float
    changed: str


def measure(
    lab: Lab, results: Results, sizes: Sequence[int], budget_s: float, say: Progress
) -> None:
    """Measure each size once, and again as long as there is time: up to `MOST_RUNS` times.

    Sizes that the results hold already, of this code, are not measured again.
    """
    started = time.monotonic()
    measured_sizes = {entry["hosts"] for entry in results.records() if entry["kind"] == KIND}
    sizes = [size for size in sizes if size not in measured_sizes]
    if not sizes:
        return
    results.begin()
    recorded = record(lab, results, say)
    folder = lab.folder / "growth" / "told"
    folder.mkdir(exist_ok=True)
    durations: dict[int, list[float]] = {size: [] for size in sizes}
    for number in range(MOST_RUNS):
        for size in sizes:
            remaining_s = budget_s - (time.monotonic() - started)
            if number and (
                len(durations[size]) < number or max(durations[size]) * 1.2 > remaining_s
            ):
                continue
            run_started = time.monotonic()
            run = _measured(lab, folder, recorded, size)
            durations[size].append(time.monotonic() - run_started)
            results.append(KIND, **asdict(run))
            say(f"{size} hosts: {run.seconds:.1f} s, {run.cpu_s:.1f} s of CPU")


def _measured(lab: Lab, folder: Path, recorded: Recording, size: int) -> Run:
    hosts = recording.hosts(recorded, size)
    recording.write(recorded, hosts, folder)
    with servers.serve(lab, folder) as running:
        site = _site(lab, folder, hosts)
        before = running.cpu_s()
        result = _run(site, folder, running.prefix)
        counted, cpu_s = _settled(running), running.cpu_s() - before
        if unknown := running.unknown():
            raise LabError(f"a command was not recorded: {unknown[:300]} …")
    if result.changed:
        raise LabError(f"{size} hosts: a run that has nothing to do changed {result.changed}")
    return Run(
        size, result.seconds, result.cpu_s, result.peak_mib, cpu_s,
        counted.connections, counted.most, counted.commands,
    )  # fmt: skip


def _settled(running: Servers) -> Counted:
    """The server's counts once it has noticed that all connections are closed."""
    before, now = None, running.counted()
    while now != before:
        time.sleep(0.3)
        before, now = now, running.counted()
    return now


def record(lab: Lab, results: Results, say: Progress) -> Recording:
    """Record what two light machines of the lab, its last, answer to the code that is measured."""
    pair = (
        replace(lab.machines[-2], role="control_plane"),
        replace(lab.machines[-1], role="worker"),
    )
    leader, worker = (
        Host(machine.name, machine.address, f"127.77.0.{number}")
        for number, machine in enumerate(pair, start=1)
    )
    folder = lab.folder / "growth" / "recorded"
    stamp = folder / "code"
    if not stamp.exists() or stamp.read_text() != results.code:
        shutil.rmtree(folder, ignore_errors=True)
        snapshot = converged(results)
        machines.reset(lab, pair, snapshot if machines.has(lab, snapshot) else DELIVERED, say)
        try:
            _record(lab, folder, leader, worker)
        finally:
            for machine in pair:
                machines.discard(lab, machine)
        stamp.write_text(results.code)
        say("recorded what a control plane and a worker answer")
    return recording.read(folder, leader, worker)


def _record(lab: Lab, folder: Path, leader: Host, worker: Host) -> None:
    """Converge the machines, then record through forced.sh a run with nothing to do."""
    for host in (leader, worker):
        (folder / host.server).mkdir(parents=True)
        (folder / host.server / "machine").write_text(f"{host.name}\n")
    _write_ssh_config(lab, folder, (leader, worker))
    _run(_site(lab, folder, (leader, worker), direct=True), folder)
    with servers.serve(lab, folder, (leader.server, worker.server)):
        result = _run(_site(lab, folder, (leader, worker)), folder)
    if result.changed:
        raise LabError(f"after a run that made all right there was something to change: {result}")


def _write_ssh_config(lab: Lab, folder: Path, hosts: Sequence[Host]) -> None:
    """Write the configuration by which forced.sh reaches its machines."""
    key = folder / "machine_key"
    key.touch(mode=0o600)
    key.write_text(lab.ssh_key.read_text())
    options = "User root\nIdentityFile /mnt/machine_key\nUserKnownHostsFile /mnt/machine_hosts\n"
    (folder / "machine_hosts").write_text(lab.known_hosts.read_text())
    text = "".join(f"Host {host.name}\nHostName {host.address}\n{options}" for host in hosts)
    (folder / "ssh_config").write_text(text)


def _site(lab: Lab, folder: Path, hosts: Sequence[Host], direct: bool = False) -> Path:
    """Write the inventory's file. + direct: reach the machines themselves, not the server"""
    known_hosts = lab.known_hosts
    if not direct:
        known_hosts = servers.known_hosts(folder, [host.server for host in hosts])
    site_settings = settings(Site(lab.name, folder, lab.ssh_key, known_hosts, ()))
    site_settings["cluster"] = {**site_settings["cluster"], "pod_cidr": _POD_CIDR}
    site_settings["verify"] = {**site_settings["verify"], "reports": str(folder / "reports")}

    def entry(host: Host) -> tuple[str, Mapping[str, Any]]:
        return host.name, {
            "ssh_hostname": host.address if direct else host.server,
            "ssh_port": 22 if direct else servers.PORT,
            "ssh_user": "root",
            "ssh_key": str(lab.ssh_key),
            "ssh_known_hosts_file": str(known_hosts),
            "address": host.address,
            "gpus": GPUS,
            "_sudo": False,
        }

    entries = [entry(host) for host in hosts]
    path = folder / "site.json"
    content = {"settings": site_settings, "control_plane": entries[:1], "workers": entries[1:]}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def _run(site: Path, folder: Path, prefix: Sequence[str] = ()) -> _RunResult:
    """Run the host layers once. Raises `LabError` when it fails."""
    pyinfra = str(Path(sys.executable).with_name("pyinfra"))
    deploy = ["bench/growth/inventory.py", "deploys/host_layers.py", "-y"]
    pointer = folder / "report"
    pointer.unlink(missing_ok=True)
    bench_variables = {
        "GPUBOOT_BENCH_HOSTS": str(site),
        POINTER: str(pointer),
        "PYTHONPATH": str(ROOT),
    }
    started = time.monotonic()
    with (folder / "stdout").open("w") as out, (folder / "stderr").open("w") as err:
        process = subprocess.Popen(
            [*prefix, pyinfra, *deploy], cwd=ROOT, env={**os.environ, **bench_variables},
            stdin=subprocess.DEVNULL, stdout=out, stderr=err,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    stdout, stderr = ((folder / name).read_text() for name in ("stdout", "stderr"))
    outcome = Gpuboot().outcome(stdout, stderr, folder)
    if process.returncode or outcome.failed:
        tail = "\n".join((stdout + stderr).strip().splitlines()[-15:])
        raise LabError(f"the run failed with status {process.returncode}: {outcome.failed}\n{tail}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return _RunResult(seconds, cpu_s, usage.ru_maxrss / 1024, difference(outcome))
