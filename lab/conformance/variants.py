"""What is done to a lab before the suite runs on it, and the commands that do it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import yaml

from gpuboot.cluster.kubeadm import API_PORT
from lab import machines, state
from lab.build.programs import build_all
from lab.build.progress import Progress
from lab.conformance import builds
from lab.conformance.images import conformance_dir
from lab.conformance.suite import Programs
from lab.mirror import docroot
from lab.mirror.parts import Part
from lab.settings import SETTINGS_VARIABLE
from lab.state import Lab, LabError

ROOT = Path(__file__).parents[2]
INVENTORY = "inventories/lab.py"
_MACHINES = "1,1"  # workers: with the control plane the three nodes that upstream asks for


class After(StrEnum):
    """What was done to the cluster before."""

    deploy = "deploy"
    upgrade = "upgrade"
    restore = "restore"


@dataclass(frozen=True)
class Variant:
    """A kind of cluster. + flannel_backend: "" for the default"""

    after: After = After.deploy
    control_planes: int = 1
    flannel_backend: str = ""

    @property
    def title(self) -> str:
        """A title, e.g. `after an upgrade, 3 control planes, flannel host-gw`; "" for the usual."""
        parts = [f"after {self.after}"] if self.after is not After.deploy else []
        parts += [f"{self.control_planes} control planes"] if self.control_planes > 1 else []
        parts += [f"flannel {self.flannel_backend}"] if self.flannel_backend else []
        return ", ".join(parts)

    def up(self, name: str) -> list[str]:
        """The command that makes the lab and deploys to it."""
        command = [sys.executable, "-m", "lab", "--name", name, "--gpus", _MACHINES]
        command += ["--control-planes", str(self.control_planes)] if self.control_planes > 1 else []
        return [*command, *(["--previous-release"] if self.after is After.upgrade else [])]

    def after_deploy(self, name: str) -> list[str]:
        """The command that follows the deploy; nothing where none does."""
        pyinfra = [str(Path(sys.executable).with_name("pyinfra")), INVENTORY]
        if self.after is After.upgrade:
            return [*pyinfra, "deploys/site.py", "-y"]
        if self.after is After.restore:
            restored = f"gpuboot_restore=gpuboot-{name}"
            return [*pyinfra, "deploys/restore.py", "-y", "--data", restored]
        return []

    def settings(self) -> dict[str, dict[str, str]]:
        """Settings laid over the lab's."""
        backend = self.flannel_backend
        return {"cluster": {"flannel_backend": backend}} if backend else {}


def environment(name: str, variant: Variant) -> Mapping[str, str]:
    """What commands have to know to work with the lab."""
    settings = variant.settings()
    overrides = {SETTINGS_VARIABLE: json.dumps(settings)} if settings else {}
    return {**os.environ, "GPUBOOT_LAB": name, **overrides}


def prepare(name: str, variant: Variant, progress: Progress) -> tuple[Lab, Programs]:
    """A lab with a cluster of this kind and the suite's images, and the suite's programs.

    Raises `LabError`.
    """
    programs = build_all(progress, also=builds.recipes())
    variables = environment(name, variant)
    run(variant.up(name), variables, progress)
    lab = state.load(name)
    serve_images(lab, conformance_dir(programs, progress))
    if command := variant.after_deploy(name):
        run(command, variables, progress)
    return lab, Programs(programs["ginkgo"], programs["e2e.test"], programs["kubectl"])


def serve_images(lab: Lab, folder: Path) -> None:
    """Add a folder of images to what the lab's mirror serves."""
    part = Part(folder, "v2")
    parts = docroot.parts_of(lab)
    docroot.install(lab, [*(entry for entry in parts if entry != part), part])


def run(command: Sequence[str], variables: Mapping[str, str], progress: Progress) -> None:
    """Run a command to its end. Raises `LabError` when it fails."""
    progress(" ".join(command))
    code = subprocess.run(command, cwd=ROOT, env=dict(variables)).returncode
    if code:
        raise LabError(f"{' '.join(command[:3])} … failed with status {code}: see its output above")


def kubeconfig(lab: Lab) -> Path:
    """The administrator's kubeconfig of the lab's cluster, as a file that goes with the lab.

    Its server is the first control plane's address: this host does not resolve nodes' names.
    """
    command = [*machines.ssh_command(lab, lab.leader), "cat", "/etc/kubernetes/admin.conf"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise LabError(f"{lab.leader.name} has no cluster: {result.stderr.strip()}")
    path = lab.folder / "admin.conf"
    path.touch(mode=0o600)
    access = yaml.safe_load(result.stdout)
    for item in access["clusters"]:
        item["cluster"]["server"] = f"https://{lab.leader.address}:{API_PORT}"
    path.write_text(yaml.safe_dump(access))
    return path
