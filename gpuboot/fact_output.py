"""What hosts answer: our own lines, told apart from all else that their shells print.

A login banner, a `.bashrc` or a profile that prints to standard output does so beside each of our
commands. So a command runs in a frame: its lines are marked, and a last one says how many they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

_MARK = "##gpuboot##"
# what stands around a command: it runs in a subshell, and its exit status becomes the frame's
_HEAD = "{ ("
_TAIL = (
    "\n); printf '\\n%s\\n' $?; } | LC_ALL=C awk '{ line[NR] = $0 } END { n = NR - 1; "
    'if (line[n] == "") n--; for (i = 1; i <= n; i++) { size += length(line[i]); '
    f'print "{_MARK}=" line[i] }} print "{_MARK}." n " " size + 0; exit line[NR] }}\''
)


class UnfinishedAnswer(ValueError):
    """The frame of an answer is not whole."""


@dataclass(frozen=True)
class Answer:
    """A command's own lines, and those that others printed beside it."""

    lines: list[str]
    noise: list[str]


def framed(command: str) -> str:
    """A shell command (POSIX sh) whose output `answer` can tell apart from other output."""
    return f"{_HEAD} {command.strip()}{_TAIL}"


def answer(output: Iterable[str]) -> Answer:
    """What a framed command printed, from all that came with it.

    + output: lines of standard output

    Raises `UnfinishedAnswer` when lines of ours are missing, or something was printed into one.
    """
    lines, noise, end = [], [], ""
    for line in output:
        before, mark, text = line.partition(_MARK)
        if before.strip():  # without a newline at its end it stands before our own
            noise.append(before.strip())
        if mark and text.startswith("="):
            lines.append(text[1:])
        elif mark:
            end = text
    size = sum(len(line.encode()) for line in lines)
    if end != f".{len(lines)} {size}":
        raise UnfinishedAnswer("the host's answer is not whole")
    return Answer(lines, noise)


def fields(lines: Iterable[str]) -> dict[str, list[str]]:
    """The values of each key of "key<TAB>value" lines, in order: a key may have several.

    A line without a tab is passed over.
    """
    values: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        key, tab, value = line.partition("\t")
        if tab:
            values[key].append(value.strip())
    return values
