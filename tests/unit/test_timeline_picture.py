"""The picture of where the time of a run went: legible whatever was noted, and well-formed."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from gpuboot.verify.report.timeline.layout import CONTROL, MOST_LANES, picture
from gpuboot.verify.report.timeline.shapes import Picture, duration, tick_step
from gpuboot.verify.report.timeline.svg import MIDDLE, NARROW, WIDE, pictures
from tests.unit.made_runs import FIRST, RECORDED, site

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("width", [WIDE, MIDDLE, NARROW])
@pytest.mark.parametrize("count", [1, 3, 40, 41, 300])
def test_no_text_of_the_picture_meets_another_or_leaves_it(count: int, width: float) -> None:
    assert_legible(picture(site(count), width))


@pytest.mark.parametrize("width", [WIDE, MIDDLE, NARROW])
@pytest.mark.parametrize("recorded", [RECORDED, FIRST, site(3, slower=900), site(3, slower=30_000)])
def test_no_text_meets_another_however_long_a_run_took(recorded: Any, width: float) -> None:
    assert_legible(picture(recorded, width))


def assert_legible(drawing: Picture) -> None:
    for first, second_text in itertools.combinations(drawing.texts, 2):
        a, b = first.box, second_text.box
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, (first, second_text)
    for text in drawing.texts:
        x_start, top, right, bottom = text.box
        assert x_start >= -0.1, text
        assert right <= drawing.width + 0.1, text
        assert top >= 0, text
        assert bottom <= drawing.height, text
    for bar in drawing.bars:
        assert bar.x >= 0, bar
        assert bar.x + bar.width <= drawing.width, bar
        assert drawing.top <= bar.y <= drawing.bottom - bar.height, bar
    for band in drawing.bands:  # the line from its name to its time meets no other name
        for text in drawing.texts:
            x_start, top, right, bottom = text.box
            crossed = x_start < band.x < right and top < drawing.top and bottom > band.y
            assert not crossed, (band, text)


def test_more_hosts_than_lanes_share_the_last_one() -> None:
    drawing = picture(site(300), WIDE)
    names = [text.text for text in drawing.texts if text.end]
    assert f"{300 - MOST_LANES + 1} other hosts" in names
    assert "node300" in names  # the slowest
    assert "node1" in names  # the run waited for it
    assert CONTROL in names
    lanes = {bar.y for bar in drawing.bars}
    assert len(lanes) == MOST_LANES + 1
    summary_bars = sum(len(bar.title) > 200 for bar in drawing.bars)
    assert summary_bars == 0  # no title names everything


@pytest.mark.parametrize("recorded", [RECORDED, FIRST, site(1), site(40)])
def test_the_svg_is_well_formed_and_tells_what_it_shows(recorded: Any) -> None:
    for svg in pictures(recorded):
        root = ET.fromstring(svg)
        assert root.attrib["role"] == "img"
        ids = {item.attrib["id"]: item for item in root.iter() if "id" in item.attrib}
        labels = [ids[name] for name in root.attrib["aria-labelledby"].split()]
        assert labels[0].text == "Timeline of the run"
        assert "What the run waited for longest: " in (labels[1].text or "")
        assert all(rect.find(f"{SVG}title") is not None for rect in bars(root))
        assert root.find(f"{SVG}polyline[@class='chain']") is not None


def bars(root: ET.Element) -> list[ET.Element]:
    kinds = ("work", "changed", "wait")
    return [item for item in root.iter(f"{SVG}rect") if item.attrib["class"] in kinds]


def test_waits_and_changes_are_marked() -> None:
    root = ET.fromstring(pictures(site(3))[0])
    kinds = [item.attrib["class"] for item in bars(root)]
    assert kinds.count("wait") == 3
    assert kinds.count("changed") > kinds.count("wait")
    titles = [item.findtext(f"{SVG}title") or "" for item in bars(root)]
    assert any(text.startswith("node3: waited for: Drivers ready (6.2 s)") for text in titles)
    unchanged = ET.fromstring(pictures(site(3, changed=False))[0])
    assert "changed" not in {item.attrib["class"] for item in bars(unchanged)}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.5, "0.5 s"), (20, "20 s"), (60, "1 min"), (200, "3:20 min"), (3600, "60 min")],
)
def test_durations(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_ticks_are_never_too_many() -> None:
    for seconds in (0.4, 5, 28, 100, 700, 7200, 100_000):
        assert seconds / tick_step(seconds, 5) <= 5
    assert tick_step(28, 12) == 5
