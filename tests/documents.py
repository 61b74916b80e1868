"""The commands and settings that stand in the README and in docs/, found as a reader finds them."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)(?: {4}.*\n|\n(?= {4}))*")
_INLINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_ASSIGNMENT = re.compile(r"^[A-Z_]+=")
# what a shell does itself, and what runs another command
_SHELL = {".", "alias", "echo"}
_WRAPPERS = {"sudo", "env"}


@dataclass(frozen=True)
class Command:
    """One command of a page. words: as the program gets them, without the environment."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def pages() -> list[Path]:
    """Every page about what is; the changelog also names what was."""
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    read = (name for name in files if "/" not in name or name.startswith("docs/"))
    return [ROOT / name for name in read if name != "CHANGELOG.md"]


def commands(programs: set[str]) -> list[Command]:
    """All commands: those of shell blocks whatever they are, elsewhere those of known programs.

    + programs: their names; text in backquotes that begins with none of them is no command
    """
    unique_commands: dict[Command, None] = {}
    for page in pages():
        name, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
        for line in _shell_lines(text, programs):
            unique_commands.update((Command(name, words), None) for words in split(line))
        for match in _INLINE.finditer(_without_blocks(text)):
            for words in split(match[1].replace("\\|", "|"), loose=True):
                if words[0] in programs and len(words) > 1:
                    unique_commands[Command(name, words)] = None
    return list(unique_commands)


def settings() -> list[tuple[str, str]]:
    """(page, Python source) of every block that assigns `gpuboot`."""
    return [
        (str(page.relative_to(ROOT)), block)
        for page in pages()
        for block in _blocks(page.read_text(encoding="utf-8"))
        if re.search(r"^gpuboot = ", block, re.MULTILINE)
    ]


def split(line: str, loose: bool = False) -> Iterator[tuple[str, ...]]:
    """The commands of one line: pipes and `;` part them, comments and variables go.

    + loose: text that no shell could read has no commands, instead of ValueError
    """
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&")
        lexer.whitespace_split = True
        tokens = list(lexer)
    except ValueError:
        if loose:
            return
        raise
    words: list[str] = []
    for token in [*tokens, ";"]:
        if set(token) <= set("|;&"):
            words = _program(words)
            if words:
                yield tuple(words)
            words = []
        else:
            words.append(token)


def _program(words: list[str]) -> list[str]:
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _WRAPPERS):
        words = words[1:]
    return [] if words and words[0] in _SHELL else words


def _shell_lines(text: str, programs: set[str]) -> Iterator[str]:
    for language, block in _FENCED.findall(text):
        if language in {"sh", "console"}:
            yield from _joined(block, prompt=language == "console")
    for block in _indented(text):
        first, _, arguments = block.strip().partition(" ")
        if first in programs and not arguments.startswith("= "):
            yield from _joined(block, prompt=False)


def _joined(block: str, prompt: bool) -> Iterator[str]:
    for line in block.replace("\\\n", " ").splitlines():
        if line.strip() and (not prompt or line.startswith("$ ")):
            yield line.removeprefix("$ ").strip()


def _blocks(text: str) -> list[str]:
    return [block for _, block in _FENCED.findall(text)] + _indented(text)


def _indented(text: str) -> list[str]:
    blocks = _INDENTED.findall(_FENCED.sub("", text))
    return [re.sub(r"^ {4}", "", block, flags=re.MULTILINE) for block in blocks]


def _without_blocks(text: str) -> str:
    return _INDENTED.sub("", _FENCED.sub("", text))
