"""The quickstart and the CI smoke test: a machine that deploys to itself, as a user with sudo.

What is run are the steps of .github/workflows/gpu-smoke.yml, as a runner would, on Debian 13 with
its own Python; the default lab's machines are Debian 12.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from pprint import pformat
from typing import Any

import pytest
import yaml

from lab import machines, settings, state
from lab.build.store import digest, stored
from lab.gpusim.builds import DRIVER_VERSIONS
from tests.e2e.conftest import ROOT, Lab, fresh_lab

pytestmark = pytest.mark.lab
TODAY, BEFORE = DRIVER_VERSIONS

NAME = "test-quickstart"
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/gpu-smoke.yml").read_text())
STEPS = {step["name"]: step["run"] for step in WORKFLOW["jobs"]["smoke"]["steps"] if "run" in step}
INSTALL, *DEPLOY, TAKE_APART = STEPS
WHEELS = "/home/admin/wheels"
DEBIAN, PYTHON = "13", "3.13"
MANYLINUX = ("manylinux_2_28", "manylinux_2_17", "manylinux_2_12", "manylinux_2_5")


@pytest.fixture(scope="module")
def runner() -> Iterator[Lab]:
    """A bare machine with two GPUs, Python, the checkout and, as it has no internet, wheels."""
    with fresh_lab(NAME, "--single", "--debian", DEBIAN, "--no-deploy") as lab:
        lab.ssh("node1", "apt-get -q update && apt-get -q install -y python3-venv")
        files = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        tracked = [name for name in files.decode().split("\0") if name and (ROOT / name).exists()]
        _copy(ROOT, tracked, "gpuboot")
        wheels = _wheels()
        _copy(wheels, [path.name for path in wheels.iterdir()], WHEELS)
        yield lab


def _wheels() -> Path:
    """What requirements.lock names, for the machine's Python, kept in the cache."""
    lock = ROOT / "requirements.lock"

    def make(part: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        pip += [f"--platform={name}_x86_64" for name in MANYLINUX]
        pip += ["--only-binary=:all:", "--no-deps", f"--python-version={PYTHON}"]
        subprocess.run([*pip, "--require-hashes", "-r", str(lock), "-d", str(part)], check=True)

    return stored(f"wheels-{digest(lock, PYTHON)}", make)


def _copy(source: Path, names: list[str], target: str) -> None:
    """Copy files to a folder of the machine's user."""
    lab = state.load(NAME)
    shell = shlex.join(machines.ssh_command(lab, lab.leader, "admin"))
    script = f"tar -c --no-recursion -T - | {shell} 'mkdir -p {target} && tar -x -C {target}'"
    file_list = "\n".join(names).encode()
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=source, input=file_list, check=True
    )


def step(lab: Lab, name: str) -> str:
    """Run a step of the workflow as GitHub's runner does: by bash, from the checkout."""
    offline = f"PIP_NO_INDEX=1 PIP_FIND_LINKS={WHEELS}"
    bash = f"bash --noprofile --norc -eo pipefail -c {shlex.quote(STEPS[name])}"
    return lab.ssh("node1", f"cd gpuboot && {offline} {bash} 2>&1", user="admin")


def site() -> dict[str, Any]:
    """The settings of a site that downloads from the lab's mirror; alerts go nowhere.

    The cluster has the name that it gets by default: the workflow resets it by that.
    """
    site_settings = settings.settings(NAME)
    del site_settings["alertmanager"], site_settings["cluster"]["name"]
    return site_settings


def test_it_installs_from_its_lock(runner: Lab) -> None:
    step(runner, INSTALL)
    assert step(runner, INSTALL) == ""


def test_a_machine_proves_its_own_gpus(runner: Lab) -> None:
    text = f"gpuboot = {pformat(site())}\n"
    runner.ssh("node1", f"cat > gpuboot/group_data/quickstart.py <<'E'\n{text}E", user="admin")
    for name in DEPLOY:
        step(runner, name)
    report = json.loads(runner.ssh("node1", "cat gpuboot/reports/latest/verify.json", user="admin"))
    assert (report["verdict"], report["totals"]["gpus"]) == ("proven", 2)
    assert runner.snapshot()["ready"] == {"node1": ["True"]}


_WHEEL = f"""
ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519
cat .ssh/id_ed25519.pub >> .ssh/authorized_keys
gpuboot/.venv/bin/pip -q wheel --no-deps --no-build-isolation -w built ./gpuboot
python3 -m venv wheel
wheel/bin/pip -q install --no-index --find-links {WHEELS} built/*.whl
mkdir site && cd site
../wheel/bin/gpuboot init --name prod --user admin 127.0.0.1
"""


def test_the_wheel_runs_the_same_site_from_an_empty_folder(runner: Lab) -> None:
    """The cluster is the one that the checkout's run has made; only the way to its host differs."""
    runner.ssh("node1", f"set -e; {_WHEEL}", user="admin")
    text = f"gpuboot = {pformat(site())}\n"
    runner.ssh("node1", f"cat >> site/group_data/prod.py <<'E'\n{text}E", user="admin")
    run = "../wheel/bin/pyinfra inventories/prod.py deploys/site.py"
    plan = runner.ssh("node1", f"cd site && {run} --dry 2>&1", user="admin")
    assert "NOT PROVEN" not in plan
    runner.ssh("node1", f"cd site && {run} -y 2>&1", user="admin")
    report = json.loads(runner.ssh("node1", "cat site/reports/latest/verify.json", user="admin"))
    assert (report["verdict"], report["totals"]["gpus"]) == ("proven", 2)


def test_it_does_not_reboot_under_the_run(runner: Lab) -> None:
    """Another driver is wanted: only the person at the machine may reboot it."""
    boot = runner.ssh("node1", "cat /proc/sys/kernel/random/boot_id")
    command = (
        f"cd gpuboot && sed -i s/{TODAY}/{BEFORE}/ gpuboot/config/versions.toml && "
        ".venv/bin/pyinfra inventories/quickstart.py deploys/site.py -y 2>&1; echo code $?"
    )
    output = runner.ssh("node1", command, user="admin")
    assert "code 1" in output
    assert "@local is the machine that you run this from" in output
    assert "remedy: reboot it yourself" in output
    assert runner.ssh("node1", "cat /proc/sys/kernel/random/boot_id") == boot


def test_it_is_reset(runner: Lab) -> None:
    step(runner, TAKE_APART)
    assert (
        runner.ssh(
            "node1",
            "pgrep -a kube; crictl ps -q; ls -A /etc/kubernetes/manifests 2>/dev/null; true",
        )
        == ""
    )
