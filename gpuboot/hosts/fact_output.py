"""What facts' commands print: our own lines, told apart from all else that shells print, and
the values in them.

A login banner, a `.bashrc` or a profile that prints to standard output does so beside each of our
commands. So a command runs in a frame: its lines are marked, and a last one says how many they are.
"""

import base64
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_MARK = "##gpuboot##"
# what stands around a command: it runs in a subshell, and its exit status becomes the frame's
_HEAD = "{ ("
_TAIL = (
    "\n); printf '\\n%s\\n' $?; } | LC_ALL=C awk '{ line[NR] = $0 } END { n = NR - 1; "
    'if (line[n] == "") n--; for (i = 1; i <= n; i++) { size += length(line[i]); '
    f'print "{_MARK}=" line[i] }} print "{_MARK}." n " " size + 0; exit line[NR] }}\''
)


class FactOutputError(ValueError):
    """The output of a fact's command is not whole, or not what the command prints."""


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

    Raises `FactOutputError` when lines of ours are missing, or something was printed into one.
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
        raise FactOutputError("the host's answer is not whole")
    return Answer(lines, noise)


class Fields:
    """The values in lines of "key<TAB>value", in order: a key may have several, or none.

    + separator: between key and value
    + last: key of the last line; without it the output is not whole. None: every line may be

    Raises `FactOutputError` where that line is missing.
    """

    def __init__(
        self, lines: Iterable[str], separator: str = "\t", last: str | None = "end"
    ) -> None:
        self._values: dict[str, list[str]] = defaultdict(list)
        for line in lines:
            key, _, value = line.rstrip("\n").partition(separator)
            self._values[key].append(value)
        if last is not None and last not in self._values:
            raise FactOutputError(
                f"the host's answer ends early: its last line, {last}, is missing"
            )

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def raw(self, key: str) -> list[str]:
        """The values of a key with the blanks around them."""
        return self._values.get(key, [])

    def all(self, key: str) -> list[str]:
        """The values of a key, without blanks around them."""
        return [value.strip() for value in self.raw(key)]

    def first(self, key: str) -> str:
        """The first value of a key; "" where there is none."""
        return next(iter(self.all(key)), "")

    def text(self, key: str) -> str:
        """The text behind base64 in a key's first value; "" where there is none."""
        return base64.b64decode(self.first(key)).decode()

    def json(self, key: str) -> Any:
        """The JSON in a key's first value; None where there is none."""
        return json.loads(text) if (text := self.first(key)) else None

    def number(self, key: str) -> int:
        """The whole number in a key's first value; 0 where there is none."""
        return int(self.first(key) or 0)

    def rows(self, key: str) -> list[list[str]]:
        """The tab-separated columns of each of a key's values."""
        return [[column.strip() for column in value.split("\t")] for value in self.raw(key)]

    def words(self, key: str, count: int) -> list[list[str]]:
        """The blank-separated words of each of a key's values; the last holds the rest.

        + count: how many words; those that are missing are ""
        """
        rows = [value.split(None, count - 1) for value in self.all(key)]
        return [[*(word.strip() for word in row), *[""] * (count - len(row))] for row in rows]

    def pairs(self, key: str) -> dict[str, str]:
        """The first word of each of a key's values -> the rest of it."""
        return dict(self.words(key, 2))
