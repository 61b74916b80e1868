"""Runs the suite against a lab's cluster, and reads what became of it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpuboot.conformance.suite_results import Results, Spec, parse_junit, results_of
from lab.build.progress import Progress, duration
from lab.conformance import suite
from lab.conformance.suite import Part, Programs
from lab.conformance.variants import INVENTORY, ROOT, Variant, environment, kubeconfig
from lab.state import Lab, LabError

_EVERY_S = 60.0  # between lines that say how far it is
PASSED = "•"  # what ginkgo prints for each spec that passed


def parts(
    selection: Sequence[Part],
    programs: Programs,
    lab: Lab,
    folder: Path,
    pattern: str,
    processes: int,
    progress: Progress,
) -> Results:
    """Run parts of the suite one after the other.

    + folder: gets a JUnit file and a log of each
    + pattern: only specs that this expression of Go matches; with "" all have to run

    Raises `LabError` where a part ended without a JUnit file.
    """
    access = kubeconfig(lab)
    expected = expected_specs(programs, selection)
    specs: list[Spec] = []
    for part in selection:
        command = suite.command(part, programs, access, folder, pattern, processes)
        specs += _part(part, command, folder, progress)
    return results_of(specs, [] if pattern else expected, suite.EXCLUDED)


def _part(part: Part, command: Sequence[str], folder: Path, progress: Progress) -> list[Spec]:
    log, junit = folder / f"{part.name}.log", suite.junit_file(part, folder)
    junit.unlink(missing_ok=True)
    progress(f"{part.name}: log {log}")
    with log.open("w") as stream, _reported(part.name, log, progress):
        process = subprocess.Popen(command, cwd=folder, stdout=stream, stderr=subprocess.STDOUT)
        try:
            process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if not junit.exists():
        raise LabError(f"the suite's {part.name} part ended without a result: see {log}")
    return parse_junit(junit.read_text())


@contextmanager
def _reported(name: str, log: Path, progress: Progress) -> Iterator[None]:
    """Say every minute how many specs have passed, as long as the block lasts."""
    started, finished = time.monotonic(), threading.Event()

    def report() -> None:
        while not finished.wait(_EVERY_S):
            passed = log.read_text(errors="replace").count(PASSED)
            progress(f"{name}: {passed} passed, {duration(time.monotonic() - started)} so far")

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def expected_specs(programs: Programs, selection: Sequence[Part]) -> list[str]:
    """The names of all specs that these parts have to run.

    Raises `LabError` where the suite does not have one of those that are left out.
    """
    command = [str(programs.suite), "--list-conformance-tests"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise LabError(f"the suite does not list its specs: {result.stderr.strip()[-300:]}")
    names = suite.conformance_specs(result.stdout)
    if renamed := suite.EXCLUDED.keys() - set(names):
        raise LabError(f"EXCLUDED of lab/conformance/suite.py names no spec: {'; '.join(renamed)}")
    return [name for name in names if any(part.selects(name) for part in selection)]


def from_a_pod(
    lab: Lab, variant: Variant, folder: Path, pattern: str, processes: int, progress: Progress
) -> Results:
    """Run the suite by the product's own command. + pattern: as in `parts`"""
    command = [str(Path(sys.executable).with_name("gpuboot")), "conformance", INVENTORY]
    command += ["--kubernetes", "--processes", str(processes), "--out", str(folder)]
    command += ["--focus", pattern] if pattern else []
    progress(" ".join(command))
    subprocess.run(command, cwd=ROOT, env=dict(environment(lab.name, variant)))
    junit = folder / "junit_01.xml"
    if not junit.exists():
        raise LabError("`gpuboot conformance` fetched no result: see its output above")
    specs = [spec for spec in parse_junit(junit.read_text()) if spec.name not in suite.EXCLUDED]
    return results_of(specs, excluded=suite.EXCLUDED)
