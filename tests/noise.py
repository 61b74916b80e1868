"""What hosts print beside our commands: a login banner, a chatty `.bashrc`, a job of its own."""

from __future__ import annotations

from collections.abc import Iterable

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
    """What a framed command that prints these lines prints, as tests/unit/test_answers.py compares.

    A shell for each answer of each fake host would be a third of the CPU time of a plan's test.
    """
    texts = "".join(f"{line}\n" for line in lines).splitlines()
    size = sum(len(text.encode()) for text in texts)
    return [*(f"##gpuboot##={text}" for text in texts), f"##gpuboot##.{len(texts)} {size}"]


def noisy(lines: Iterable[str]) -> list[str]:
    """The same beside noise: before, between and after, and without a newline at its end."""
    first, *remaining = framed_lines(lines)
    between = [line for item in remaining for line in (*NOISE, item)]
    return [*NOISE, f"Last login: today {first}", *between, *NOISE]
