"""The picture of a run as SVG, for the page of the run: its colours are the page's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from gpuboot.verify.report.page import page
from gpuboot.verify.report.timeline.chain import longest_links
from gpuboot.verify.report.timeline.layout import picture
from gpuboot.verify.report.timeline.stretches import Stretch, timed

# Pixels of a window on a desk, of half of one, and of one in a hand.
WIDE, MIDDLE, NARROW = 1096.0, 690.0, 340.0


def pictures(run: Mapping[str, Any]) -> list[Markup]:
    """The picture in three widths, of which the page shows the one that fits the window.

    + run: as run.json has it. Of an old file there is none: an empty list
    """
    if not timed(run):
        return []
    widths = {"wide": WIDE, "middle": MIDDLE, "narrow": NARROW}
    return [svg(run, width, name) for name, width in widths.items()]


def svg(run: Mapping[str, Any], width: float, name: str) -> Markup:
    """The picture in this many pixels. + name: of the element; unique on the page"""
    drawing = picture(run, width)
    return Markup(
        page("timeline.svg.j2", p=drawing, name=f"timeline-{name}", description=_description(run))
    )


def _description(run: Mapping[str, Any]) -> str:
    """The picture in words."""
    hosts = len(run["hosts"])
    longest = "; ".join(f"{link_name(item)} {item.seconds:.1f} s" for item in longest_links(run, 3))
    return (
        f"{run['seconds']:.1f} s on {hosts} {'host' if hosts == 1 else 'hosts'}: time to the "
        f"right, a lane for each host. What the run waited for longest: {longest}."
    )


def link_name(item: Stretch) -> str:
    """A link of the longest chain by its name, and where it ran."""
    name = f"{item.stage} | {item.label}" if item.label not in ("", item.stage) else item.stage
    return f"{name} on {item.host}" if item.host else name
