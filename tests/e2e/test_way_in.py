"""From SSH to the lab's machines, and nothing else, to an inventory that a run takes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from pprint import pformat

import pytest

from gpuboot.site.site_check import parse_assignments
from lab import settings, state
from lab.settings import SETTINGS_VARIABLE
from tests.e2e.conftest import ROOT, Lab
from tests.inputs.command_line import project

pytestmark = pytest.mark.lab


def ssh_config(name: str, folder: Path) -> Path:
    """What a person's ~/.ssh/config would say of the lab's machines."""
    lab = state.load(name)
    hosts = [f"Host {machine.name}\n  HostName {machine.address}" for machine in lab.machines]
    login = f"  User root\n  IdentityFile {lab.folder}/ssh/id_ed25519"
    known_hosts = f"  UserKnownHostsFile {lab.folder}/ssh/known_hosts"
    path = folder / "ssh_config"
    path.write_text("\n".join([*hosts, "Host *", login, known_hosts, ""]))
    return path


def gpuboot(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["gpuboot", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_lab_s_inventory_is_written_from_what_its_machines_say(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = state.load(lab.name).machines
    folder = project(tmp_path, {})
    (folder / "deploys").symlink_to(ROOT / "deploys")
    config = str(ssh_config(lab.name, folder))
    names = [machine.name for machine in machines]
    result = gpuboot(folder, "init", "--name", "prod", "--ssh-config", config, *names)
    assert result.returncode == 0, result.stdout + result.stderr
    groups = parse_assignments("prod.py", (folder / "inventories" / "prod.py").read_text())
    assert [name for name, _ in groups["control_plane"]] == ["cp1"]
    hosts = [host for group in groups.values() for host in group]
    described = {name: (data["address"], data.get("gpus", 0)) for name, data in hosts}
    assert described == {machine.name: (machine.address, machine.gpus) for machine in machines}

    # with the lab's settings, a run may start: it would be one on the lab's own inventory
    monkeypatch.setenv(SETTINGS_VARIABLE, json.dumps(dict(lab.settings)))
    with (folder / "group_data" / "prod.py").open("a") as file:
        file.write(f"gpuboot = {pformat(settings.settings(lab.name))}\n")
    checked = gpuboot(folder, "check", "inventories/prod.py", "--json")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert json.loads(checked.stdout)["passed"] is True
