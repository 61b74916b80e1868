"""Rendering of the files under `templates/`."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gpuboot.config.project_files import ROOT

TEMPLATES = ROOT / "templates"

_environment = Environment(
    loader=FileSystemLoader(TEMPLATES),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)


def render(template: str, **data: Any) -> str:
    """The text of `templates/<template>` with this data; an undefined name is an error."""
    return _environment.get_template(template).render(**data)
