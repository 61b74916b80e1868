"""What hosts print beside our commands: a login banner, a chatty `.bashrc`, a job of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

from gpuboot.hosts.fact_output import framed

# as `echo` in ~/.bashrc and `cat /etc/motd` give it; and lines that look like answers of ours
NOISE = [
    "*** Welcome to gpu1.example.com ***",
    "",
    "uid\t1000",
    "error\tsomebody else's",
    "end\tok",
    "conflict /etc/apt/sources.list.d/mine.list",
    "644 0000 /etc/hosts",
    "Id=containerd.service",
]


def framed_lines(lines: Iterable[str]) -> list[str]:
    """What a framed command that prints these lines prints in truth."""
    text = "".join(f"{line}\n" for line in lines)
    result = subprocess.run(
        ["sh", "-c", framed("cat")], input=text, capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()


def noisy(lines: Iterable[str]) -> list[str]:
    """The same beside noise: before, between and after, and without a newline at its end."""
    first, *remaining = framed_lines(lines)
    between = [line for item in remaining for line in (*NOISE, item)]
    return [*NOISE, f"Last login: today {first}", *between, *NOISE]
