"""The whole site on a lab of its own: from booted machines to the proof, and runs that find
nothing to do.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import report
from bench.data import Data
from bench.results import ROOT, Results, read
from bench.statistics import Summary, summarize
from lab.build.progress import Progress
from lab.state import LabError

FILE = "site.jsonl"
BEGIN, END = "<!-- scripts/bench site: begin -->", "<!-- scripts/bench site: end -->"
NAME = "bench-site"

_INVENTORY = "inventories/lab.py"
_BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Row:
    """A kind of run. + limit_s: seconds that its median may take"""

    title: str
    command: Sequence[str]
    limit_s: float


ROWS: Mapping[str, Row] = {
    "fresh": Row(
        "from booted machines to proven",
        (str(_BIN / "pyinfra"), _INVENTORY, "deploys/site.py", "-y"),
        150,
    ),
    "nothing": Row(
        "nothing to do, proof included",
        (str(_BIN / "pyinfra"), _INVENTORY, "deploys/site.py", "-y"),
        6,
    ),
    "verify": Row("`gpuboot verify`", (str(_BIN / "gpuboot"), "verify", _INVENTORY), 4),
    "plan": Row(
        "`--dry`, nothing to do",
        (str(_BIN / "pyinfra"), _INVENTORY, "deploys/site.py", "--dry"),
        3,
    ),
}


def measure(results: Results, rounds: int, say: Progress) -> None:
    """Make a lab, converge it once, time the other rows in turn, and take the lab down.

    Nothing is done where the results hold as many runs already, of this code. Raises `LabError`
    when a command fails.
    """
    if len([record for record in results.records() if record.get("row") == "plan"]) >= rounds:
        return
    results.begin()
    try:
        _lab("up", "--name", NAME, "--no-deploy")
        _sample(results, "fresh", say)
        _run("nothing")  # rules that Prometheus has read since; untimed
        for _ in range(rounds):
            for name in ("nothing", "verify", "plan"):
                _sample(results, name, say)
    finally:
        _lab("down", "--name", NAME)


def _sample(results: Results, name: str, say: Progress) -> None:
    seconds, cpu_s, commands = _run(name)
    say(f"{ROWS[name].title}: {seconds:.1f} s")
    results.append("site", row=name, seconds=seconds, cpu_s=cpu_s, commands=commands)


def _run(name: str) -> tuple[float, float, dict[str, int]]:
    """Seconds, CPU seconds of the controller, and commands by host."""
    row = ROWS[name]
    environment = {**os.environ, "GPUBOOT_LAB": NAME}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    used, started = _children(), time.monotonic()
    result = subprocess.run(row.command, cwd=ROOT, env=environment, capture_output=True, text=True)
    seconds = time.monotonic() - started
    if result.returncode != 0:
        raise LabError(f"{' '.join(row.command)} ended with {result.returncode}:\n{result.stderr}")
    return round(seconds, 3), round(_children() - used, 3), _commands(name)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _commands(name: str) -> dict[str, int]:
    """Inventory name -> commands sent; {} where a run leaves no run.json."""
    path = ROOT / "reports/latest/run.json"
    if name == "plan" or not path.exists():
        return {}
    run: Mapping[str, Any] = json.loads(path.read_text())
    return {host: host_run["commands"] for host, host_run in run["hosts"].items()}


def _lab(*arguments: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "lab", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    if result.returncode != 0:
        raise LabError(f"scripts/lab {' '.join(arguments)}: {result.stderr}")


def write(folder: Path, page: Path = report.PAGE) -> None:
    """Put the table of what was measured into the page. Raises `LabError` without data."""
    records = read(folder / FILE)
    if not any(record["kind"] == "site" for record in records):
        raise LabError(f"{folder} holds no such run: scripts/bench site measures some")
    data = Data([record for record in records if record["code"] == records[-1]["code"]])
    text = report.insert(page.read_text(), section(data), BEGIN, END)
    pictures = page.with_suffix("")
    pictures.mkdir(exist_ok=True)
    (pictures / FILE).write_text((folder / FILE).read_text())
    page.write_text(text)


def section(data: Data) -> str:
    """Where and when it was measured, and a row for each kind of run."""
    lines = [
        report.measured_on(data, "site", f"performance/{FILE}"),
        "",
        "| run | seconds | may take | CPU of the controller, s | commands a host, at most |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, row in ROWS.items():
        records = [
            record for record in data.records if record["kind"] == "site" and record["row"] == name
        ]
        seconds, cpu_s = (
            summarize(record[key] for record in records) for key in ("seconds", "cpu_s")
        )
        if seconds is None or cpu_s is None:
            lines.append(f"| {row.title} | not run | {row.limit_s:g} | | |")
            continue
        verdict = "met" if seconds.median <= row.limit_s else "**missed**"
        command_counts = [count for record in records for count in record["commands"].values()]
        lines.append(
            f"| {row.title} | {_ranged(seconds)} | {row.limit_s:g}: {verdict} | {_ranged(cpu_s)}"
            f" | {max(command_counts) if command_counts else '–'} |"
        )
    return "\n".join(lines)


def _ranged(summary: Summary) -> str:
    """Median, with least and most where there is more than one value."""
    if summary.count == 1:
        return f"{summary.median:.1f} (one run)"
    return f"{summary.median:.1f} ({summary.least:.1f}–{summary.most:.1f}, {summary.count} runs)"
