"""docs/exit-codes.md from the table of exit codes."""

from __future__ import annotations

from collections.abc import Mapping

from gpuboot.config.exit_codes import COMMANDS, COMMON, DEPLOYS, Row

_INTRO = """# Exit codes

How every command ends; made by `gpuboot docs exit-codes` from `gpuboot/config/exit_codes.py`.
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
    common = "".join(f"| {code} | {meaning} |\n" for code, meaning in COMMON.items())
    deploys = _table("Deploy", DEPLOYS)
    commands = _table("Command", COMMANDS)
    return f"{_INTRO}{common}\n## Deploys\n\n{deploys}\n## Commands\n\n{commands}"


def _table(title: str, rows: Mapping[str, Row]) -> str:
    cells = (
        f"| `{name}` | {row.ok} | {row.failed or '–'} | {row.could_not_tell} |\n"
        for name, row in rows.items()
    )
    return _HEAD.format(title=title) + "".join(cells)
