"""What the HTML pages of a report share: their templates, and text that holds commands."""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from gpuboot.templates import TEMPLATES

_environment = Environment(
    loader=FileSystemLoader(TEMPLATES / "report"),
    undefined=StrictUndefined,
    autoescape=True,  # logs and error messages stand in it
    trim_blocks=True,
    lstrip_blocks=True,
)


def _code(text: str) -> Markup:
    """Commands that stand in backquotes, as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


_environment.filters["code"] = _code


def page(template: str, **data: Any) -> str:
    """The page that `templates/report/<template>` makes of this data."""
    return _environment.get_template(template).render(**data)
