"""What keeps a run from starting, left for the command that started pyinfra.

`gpuboot check` and `gpuboot init` name a file by $GPUBOOT_FINDINGS; without it nothing is left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from deploys.engine.connections import unreachable
from gpuboot.config.problems import Problem, render
from gpuboot.hosts.reading import FINDINGS, Reading


def note(reading: Reading) -> None:
    """Leave what was read for the command, in place of what was left before."""
    if path := os.environ.get(FINDINGS):
        Path(path).write_text(reading.to_json(), encoding="utf-8")


def refusal(problems: Iterable[Problem]) -> str:
    """The problems that end the run, as one text; they are left for the command, too."""
    problem_list = tuple(problems)
    note(Reading(unreachable=dict(unreachable), problems=problem_list))
    return render(problem_list)
