"""How the suite is run: its parts, specs that cannot run here, and ginkgo's command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

# Specs that cannot run on the lab's machines, by full name, each with the reason. All others run.
EXCLUDED: Mapping[str, str] = {
    "[sig-node] Kubelet when scheduling a read only busybox container should not write to root "
    "filesystem [LinuxOnly] [Conformance] [NodeConformance]": "it compares the words of busybox's "
    "sh, which in the lab's image is bash (lab/conformance/images.py says why)",
}

PROCESSES = 6
TIMEOUT = "3h"  # of a part: upstream's own default would end it after one


@dataclass(frozen=True)
class Part:
    """A part of the suite, whose specs run together.

    + processes: that run specs at the same time; 0: as many as are wanted
    """

    name: str
    is_serial: bool
    processes: int = 0

    @property
    def labels(self) -> str:
        """What selects its specs, for ginkgo."""
        return f"Conformance && {'' if self.is_serial else '!'}Serial"

    def selects(self, name: str) -> bool:
        """Whether a conformance spec of this name belongs to it."""
        return ("[Serial]" in name) is self.is_serial


PARALLEL = Part("parallel", is_serial=False)
SERIAL = Part("serial", is_serial=True, processes=1)
PARTS = {part.name: part for part in (PARALLEL, SERIAL)}


@dataclass(frozen=True)
class Programs:
    """What runs the suite, as files of the store."""

    ginkgo: Path
    suite: Path
    kubectl: Path


def go_pattern(text: str) -> str:
    """A regular expression of Go that matches this text alone."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)


def command(
    part: Part,
    programs: Programs,
    kubeconfig: Path,
    reports: Path,
    pattern: str = "",
    processes: int = PROCESSES,
) -> list[str]:
    """The command line that runs a part of the suite, without retries.

    + reports: folder that gets the JUnit file
    + pattern: only specs that this expression of Go matches
    """
    excluded = [f"--skip={go_pattern(name)}" for name in EXCLUDED if part.selects(name)]
    return [
        str(programs.ginkgo),
        f"--procs={part.processes or processes}",
        f"--timeout={TIMEOUT}",
        "--no-color",
        f"--label-filter={part.labels}",
        *([f"--focus={pattern}"] if pattern else []),
        *excluded,
        str(programs.suite),
        "--",
        "--provider=skeleton",
        f"--kubeconfig={kubeconfig}",
        f"--kubectl-path={programs.kubectl}",
        f"--report-dir={reports}",
        f"--report-prefix={part.name}_",
        "--disable-log-dump",
    ]


def junit_file(part: Part, reports: Path) -> Path:
    """Where e2e.test writes what became of a part."""
    return reports / f"junit_{part.name}_01.xml"


def conformance_specs(text: str) -> list[str]:
    """The names of all conformance specs. + text: what `--list-conformance-tests` prints"""
    return [spec["codename"] for spec in yaml.safe_load(text)]
