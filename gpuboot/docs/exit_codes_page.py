"""docs/exit-codes.md from the table of exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboot.config.exit_codes import BROKEN_PIPE, HANGUP, INTERRUPTED, NOT_WRITTEN, TERMINATED
from gpuboot.config.tables import read_table

# codes that mean the same for every command
_COMMON: Mapping[int, str] = {
    NOT_WRITTEN: "all went well, but a file or an answer could not be written: the line on the "
    "screen has its path, the cause and the remedy; a code 1 or 2 is never replaced by it",
    HANGUP: "the terminal was closed (SIGHUP)",
    INTERRUPTED: "Ctrl-C (SIGINT)",
    BROKEN_PIPE: "whoever read the output ended, as `| head` does",
    TERMINATED: "told to end (SIGTERM)",
}
TABLE: Mapping[str, Any] = read_table("docs/exit_codes.toml")

_INTRO = """# Exit codes

How every command ends; made by `gpuboot docs exit-codes` from `gpuboot/docs/exit_codes.toml`.
0: all is well. 1: what the command is asked about is not well (a GPU that failed, drift, a cause).
2: not covered, or nobody could tell; a wrong option as well.

A deploy that ends with the proof ends like `gpuboot verify`: 2 where nothing failed and a GPU could
not be tried, such as one that a workload holds. A pipeline that takes this as well:
`pyinfra INVENTORY deploys/site.py -y`, and `[ $? -eq 2 ]` where that fails.

## Of every command

| Code | Meaning |
|---|---|
"""
_HEAD = "| {title} | 0 | 1 | 2 |\n|---|---|---|---|\n"


def exit_codes_markdown() -> str:
    """The content of docs/exit-codes.md."""
    common = "".join(f"| {code} | {meaning} |\n" for code, meaning in _COMMON.items())
    deploys = _table("Deploy", TABLE["deploys"])
    commands = _table("Command", TABLE["commands"])
    return f"{_INTRO}{common}\n## Deploys\n\n{deploys}\n## Commands\n\n{commands}"


def _table(title: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    cells = (
        f"| `{name}` | {row['ok']} | {row.get('failed', '–')} "
        f"| {row.get('could_not_tell', 'could not tell')} |\n"
        for name, row in rows.items()
    )
    return _HEAD.format(title=title) + "".join(cells)
