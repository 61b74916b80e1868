"""The file system that light machines are overlays of, and the mirror they install from."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from lab import machines, preflight
from lab.alert_receivers import service as alerts
from lab.build.base import base_root, mirrored_debs
from lab.build.programs import build_all
from lab.build.progress import Progress
from lab.build.store import digest
from lab.debian_releases import BOOKWORM
from lab.host import run
from lab.mirror import docroot, parts
from lab.mirror import service as mirror
from lab.state import Lab, Machine

# What images of servers have and Ansible needs: on the machines of both sides from the start.
PACKAGES = ("python3", "python3-apt")
# Nothing of these may start while a side is timed.
MASKED = (
    "apt-daily.service", "apt-daily.timer", "apt-daily-upgrade.service", "apt-daily-upgrade.timer",
    "console-getty.service", "cron.service", "dpkg-db-backup.timer", "e2scrub_all.timer",
    "fstrim.timer", "systemd-tmpfiles-clean.timer",
)  # fmt: skip
FILES = {
    # one line in the journal for each command that runs through SSH
    "etc/ssh/sshd_config.d/90-bench.conf": "LogLevel VERBOSE\n",
    "etc/systemd/journald.conf.d/90-bench.conf": (
        "[Journal]\nStorage=persistent\nSystemMaxUse=64M\nRateLimitIntervalSec=0\n"
    ),
    # as images of clouds have it; 48 machines would fill a disk with what is installed already
    "etc/apt/apt.conf.d/90-bench": 'APT::Keep-Downloaded-Packages "false";\n',
    # The host layers end before a cluster is made. Until then a kubelet starts, fails and starts
    # again: on 32 machines that would be most of what one computer does.
    "etc/systemd/system/kubelet.service.d/90-bench.conf": (
        "[Unit]\nConditionPathExists=/var/lib/kubelet/config.yaml\n"
    ),
}


def machine(lab: Lab) -> Machine:
    """The template as a machine of the lab that is never started."""
    first = lab.machines[0]
    network = first.address.rpartition(".")[0]
    return Machine("template", f"{network}.10", first.gpus, first.role)


def root(lab: Lab) -> Path:
    """Where the template lies."""
    return lab.root(machine(lab))


def ensure(lab: Lab, progress: Progress) -> None:
    """Make the template and the mirror's tree, as far as they are not there.

    Raises `LabError` when the host lacks something. The first time on a host, what the mirror
    serves is built (see docs/lab.md).
    """
    preflight.require()
    mirror.trust(lab)
    alerts.trust(lab)  # the lab's settings name its files, though nothing is sent here
    machines.ensure_ssh_key(lab)
    base = base_root(BOOKWORM, progress)
    docroot.install(lab, parts.make_parts(BOOKWORM, base, build_all(progress), progress))
    preflight.note_complete()
    stamp = lab.folder / "template.stamp"
    content = json.dumps([str(base), digest(Path(__file__))])
    if not stamp.exists() or stamp.read_text() != content:
        progress("template: making it")
        _make(lab, base, progress)
        stamp.write_text(content)


def _make(lab: Lab, base: Path, progress: Progress) -> None:
    machine_dir = lab.machine_dir(machine(lab))
    for old in (machine_dir, lab.folder / "snapshots"):
        if old.exists():
            shutil.rmtree(old)
    key = parts.repositories(lab.debian)["debian"].key().public()
    machines.create(lab, machine(lab), base, key)
    folder = root(lab)
    _install(folder, mirrored_debs(lab.debian, base, PACKAGES, progress))
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    run(["systemctl", f"--root={folder}", "mask", *MASKED])
    _write_known_hosts(lab)


def _install(folder: Path, debs: list[Path]) -> None:
    inside = folder / "tmp/debs"
    inside.mkdir()
    for deb in debs:
        shutil.copy(deb, inside)
    names = [f"/tmp/debs/{deb.name}" for deb in debs]
    options = ["--yes", "--quiet", "--no-install-recommends"]
    run(["chroot", str(folder), "apt-get", "install", *options, *names])
    shutil.rmtree(inside)


def _write_known_hosts(lab: Lab) -> None:
    """Write known_hosts: all machines are overlays of one template, with one host key."""
    public = (root(lab) / "etc/ssh/ssh_host_ed25519_key.pub").read_text()
    key = " ".join(public.split()[:2])
    lines = (f"{machine.address},{machine.name} {key}\n" for machine in lab.machines)
    lab.known_hosts.write_text("".join(lines))


def packages(lab: Lab) -> list[str]:
    """What the template has of `PACKAGES`, as `name version`."""
    command = ["dpkg-query", f"--admindir={root(lab)}/var/lib/dpkg", "-W", *PACKAGES]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return [" ".join(line.split()) for line in result.stdout.splitlines()]
