"""docs/causes.md from the table of causes."""

from __future__ import annotations

from collections.abc import Iterable

from gpuboot.diagnose.cause_model import Cause
from gpuboot.diagnose.causes import TABLE

_INTRO = """# Causes that gpuboot diagnose knows

What can be wrong, what is done about it, and what follows from it; made by `gpuboot docs causes`
from the tables in `gpuboot/diagnose/causes/`. How to use it: [diagnose.md](diagnose.md). Commands
are shown with the place to type them: `node` is the node that the diagnosis names, `leader` the
first control plane or wherever kubectl works, `here` where gpuboot runs. Words in braces are filled
in.

"""
_HEAD = """| Cause | Meaning |
|---|---|
"""


def causes_markdown() -> str:
    """The content of docs/causes.md."""
    causes = sorted(TABLE, key=lambda cause: cause.id)
    rows = (f"| [`{cause.id}`](#{cause.id}) | {cause.meaning} |\n" for cause in causes)
    return "".join([_INTRO, _HEAD, *rows, *map(_section, causes)])


def _section(cause: Cause) -> str:
    return "".join(f"{line}\n" for line in _lines(cause))


def _lines(cause: Cause) -> Iterable[str]:
    yield f"\n## {cause.id}\n"
    end = "" if cause.fallback else "."
    yield f"{_sentence(cause.meaning)}{end or '; told only where nothing else explains it.'}\n"
    yield f"Remedy: {cause.remedy}.\n"
    fields = sorted(cause.fields)
    placeholders = {name: f"{{{name}}}" for name in fields}
    yield f"```text\n{cause.on}$ {cause.command.format_map(placeholders)}\n```"
    if cause.explains:
        explained = ", ".join(f"`{cause_id}`" for cause_id in cause.explains)
        yield f"\nWhat may follow from it: {explained}."


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
