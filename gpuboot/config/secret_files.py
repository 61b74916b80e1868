"""Secrets in files of the control machine: read, checked, and named by their setting only."""

import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from gpuboot.config.problems import Problem

Check = Callable[[str], str]  # the text -> what is wrong with it, without quoting it; "": nothing

_URL = re.compile(r"^https?://[^\s/]+(/\S*)?$")


def one_line(text: str) -> str:
    """A key, token or password: one line."""
    return "it has more than one line" if "\n" in text else ""


def url(text: str) -> str:
    """A web address, which holds its own secret."""
    return "" if _URL.match(text) else "it does not hold one URL (https://…)"


def certificates(text: str) -> str:
    """PEM certificates."""
    return "" if "-----BEGIN CERTIFICATE-----" in text else "it holds no PEM certificate"


@dataclass(frozen=True)
class SecretFile:
    """A file on the control machine whose content goes to the cluster.

    + setting: the setting that names it, for messages
    + path: relative to where the run starts; `~` is the operator's home
    + check: what its content must be
    + public: the content is no secret, so anyone may read the file
    """

    setting: str
    path: str
    check: Check = one_line
    public: bool = False

    @property
    def file(self) -> Path:
        return Path(self.path).expanduser()


def read(files: Mapping[str, SecretFile]) -> tuple[dict[str, SecretStr], list[Problem]]:
    """The contents by the same names, without white space around them, and what is wrong.

    Editors end a file with a newline, which is no part of a password. Problems never quote a
    content.
    """
    contents, problems = {}, []
    for name, source in files.items():
        try:
            text = source.file.read_text().strip()
            problem = "it is empty" if not text else source.check(text)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        except UnicodeDecodeError:
            problem = "it is not text"
        if problem:
            remedy = f"put its content there, or change gpuboot[{source.setting!r}]"
            problems.append(Problem("", f"{source.setting}: {source.path}: {problem}", remedy))
        else:
            contents[name] = SecretStr(text)
    return contents, problems


def exposed(files: Iterable[SecretFile]) -> list[str]:
    """A line for each secret file that others on the control machine can read."""
    lines = []
    for source in files:
        try:
            mode = source.file.stat().st_mode
        except OSError:
            continue  # `read` tells what is wrong
        if not source.public and mode & (stat.S_IRGRP | stat.S_IROTH):
            lines.append(
                f"{source.setting}: others can read {source.path}; remedy: chmod 600 {source.path}"
            )
    return lines
