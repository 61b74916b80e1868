"""The picture of demand and forecast in the page of `gpuboot capacity`."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gpuboot.usage.capacity.hourly import Hourly
from gpuboot.usage.capacity.models import NAIVE, seasonal_naive
from gpuboot.usage.capacity.outlook import Outlook, Supply, outlook
from gpuboot.usage.capacity.picture import MIDDLE, WIDE, html, picture
from gpuboot.usage.capacity.pools import Pool
from gpuboot.usage.capacity.report import Capacity
from tests.unit.demand_series import START, make_series, trend

NAIVE_ONLY = {NAIVE: seasonal_naive}


def test_the_picture_keeps_to_its_frame_and_breaks_at_holes() -> None:
    observed = list(trend(8).observed)
    observed[200:260] = [None] * 60
    prediction = outlook(Hourly(START, tuple(observed)), Supply(64, lead_weeks=3), NAIVE_ONLY)
    drawing = picture(prediction)
    assert len(drawing.past) == 2
    points = [*drawing.middle, *drawing.band, *(point for line in drawing.past for point in line)]
    assert all(drawing.left <= x <= drawing.right for x, _ in points)
    assert all(drawing.top <= y <= drawing.bottom for _, y in points)
    assert {kind for kind, _ in drawing.levels} == {"installed", "room"}
    assert {"now", "lead"} <= {kind for kind, *_ in drawing.marks}
    places = sorted(label.y for label in drawing.texts if label.x > drawing.right)
    assert all(later - label > 12 for label, later in pairwise(places))


@pytest.mark.parametrize("width", [WIDE, MIDDLE])
@pytest.mark.parametrize("lead_weeks", [1, 8])
def test_no_line_goes_through_the_name_of_a_moment(lead_weeks: int, width: float) -> None:
    demand = Hourly(START, make_series(lambda week: 50.0 + week * 1.5).observed)
    drawing = picture(outlook(demand, Supply(110, lead_weeks=lead_weeks), NAIVE_ONLY), width)
    names = [text for text in drawing.texts if text.y < drawing.top - 4 and not text.end]
    assert len(names) == len(drawing.marks) >= 2
    for text in names:
        right = text.x + 6.5 * len(text.text)
        through = [x for _, x, y in drawing.marks if text.x < x < right and y < text.y]
        assert not through, text
        assert right < width


def test_a_refused_pool_is_drawn_too() -> None:
    refused_outlook = Outlook(Hourly(START, (3.0,) * 48), Supply(8), refusal="too short")
    drawing = picture(refused_outlook)
    assert drawing.past
    assert not drawing.band


def test_what_comes_from_outside_is_text_in_the_page() -> None:
    refused_outlook = Outlook(Hourly(START, (3.0,) * 50), Supply(8), refusal="too <b>short</b>")
    page = html(Capacity("lab", ((Pool("<script>", "nvidia.com/gpu"), refused_outlook),)))
    assert "<script>" not in page
    assert "too &lt;b&gt;short" in page


@pytest.mark.parametrize(("hours", "pictures"), [(5, 0), (30, 0), (48, 2)])
def test_less_than_two_days_make_no_picture(hours: int, pictures: int) -> None:
    refused_outlook = Outlook(Hourly(START, (3.0,) * hours), Supply(8), refusal="too short")
    page = html(Capacity("lab", ((Pool("H100", "nvidia.com/gpu"), refused_outlook),)))
    assert page.count("<svg") == pictures
