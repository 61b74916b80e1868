"""The lab's own drawing of dashboards: what it reads, and what it must not invent."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.dashboards import dashboards
from lab.dashboard_preview.graph import lines, states
from lab.dashboard_preview.page import page
from lab.dashboard_preview.panels import Series, TimeRange, defaults, panels, query_panel, table
from lab.dashboard_preview.values import PALETTE, at_threshold, format_value, heat, state

TIMES = TimeRange(0, 3600, 60)
BOARDS = dashboards(parse_settings({}))


def panel(uid: str, title: str) -> dict[str, Any]:
    (matching_panel,) = (p for p in panels(BOARDS[uid]) if p["title"] == title)
    return matching_panel


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.535, "percentunit", "53.5 %"),
        (1910.0, "watt", "1.91 kW"),
        (0.0, "short", "0"),
        (81000.0, "mbytes", "79.1 GiB"),
        (3300.0, "s", "55 mins"),
        (3852.0, "s", "1.07 hours"),
        (48.0, "suffix:GPU h", "48 GPU h"),
        (4.1601, "kwatth", "4.16 kWh"),
        (30.549, "currencyUSD", "USD 30.55"),
        (1.98e9, "hertz", "1.98 GHz"),
    ],
)
def test_units(value: float, unit: str, expected: str) -> None:
    assert format_value(value, unit) == expected


def test_thresholds_states_and_heat_give_colours() -> None:
    steps = {"steps": [{"value": None, "color": "#111111"}, {"value": 5, "color": "#222222"}]}
    assert (at_threshold(4.9, steps), at_threshold(5, steps)) == ("#111111", "#222222")
    mapping = [{"options": {"20": {"text": "fail", "color": "red"}}}]
    assert state(20.0, mapping) == ("fail", "#f2495c")
    assert state(10.0, mapping) is None
    assert heat(0) != heat(0.5) != heat(1)


def test_a_table_has_one_row_for_series_that_agree_in_their_labels() -> None:
    nodes = panel("gpu-cluster", "Nodes")
    series = [
        Series("", {"node": name}, [(0, value)], ref)
        for ref, value in (("C", 7.0), ("A", 0.0), ("B", 8.0))
        for name in ("b", "a")
    ]
    node_table = table(nodes, series)
    assert node_table.headings == ("Node", "New pods", "Promised", "Shown")
    assert node_table.rows == (("a", 0.0, 8.0, 7.0), ("b", 0.0, 8.0, 7.0))


def test_a_matrix_has_a_column_for_each_watch() -> None:
    matrix = table(
        panel("gpu-health", "Health watches"),
        [
            Series("", {"GPU": "n GPU 0", "health_watch": watch}, [(0, value)])
            for watch, value in (("PCIE", 0.0), ("MEM", 20.0))
        ],
    )
    assert matrix.headings == ("GPU", "PCIE", "MEM")
    assert matrix.rows == (("n GPU 0", 0.0, 20.0),)


def test_a_gap_in_the_data_is_a_gap_in_the_line() -> None:
    graph = panel("gpu-node", "Temperature")
    complete_points = [(float(at), 40.0) for at in range(0, 3600, 60)]
    holed = [point for point in complete_points if not 1200 < point[0] < 2400]
    count = 'stroke-width="1.4"'
    assert lines(graph, [Series("a", {}, complete_points)], TIMES, 600, 200).count(count) == 1
    assert lines(graph, [Series("a", {}, holed)], TIMES, 600, 200).count(count) == 2


def test_each_of_eleven_series_has_a_colour_of_its_own() -> None:
    graph = panel("gpu-node", "Temperature")
    gpus = [Series(f"GPU {number}", {}, [(0.0, 40.0), (60.0, 41.0)]) for number in range(11)]
    drawing = lines(graph, gpus, TIMES, 600, 200)
    assert len(set(re.findall(r'stroke="(#\w+)" stroke-width="1.4"', drawing))) == 11
    assert len(set(PALETTE)) == len(PALETTE)


def test_a_second_measure_is_dashed_in_graph_and_legend() -> None:
    graph = panel("gpu-profile", "Engine and SM")
    points = [(0.0, 0.4), (60.0, 0.5)]
    solid = lines(graph, [Series("engine", {}, points, "A")], TIMES, 600, 200)
    two = lines(graph, [Series("SM", {}, points, "B")], TIMES, 600, 200)
    assert (solid.count('stroke-dasharray="8 5"'), two.count('stroke-dasharray="8 5"')) == (0, 2)


@pytest.mark.parametrize("width", [1440, 800])
def test_a_number_is_shown_with_its_unit_in_letters_that_fit(width: int) -> None:
    board = BOARDS["gpu-cluster"]
    wait = panel("gpu-cluster", "Longest wait")
    html = page(board, {wait["id"]: [Series("", {}, [(0.0, 3852.0)])]}, TIMES, "", width)
    (size,) = re.findall(r"font-size:(\d+)px'>1\.07 hours<", html)
    assert len("1.07 hours") * 0.6 * int(size) < width / 24 * wait["gridPos"]["w"]


def test_a_state_timeline_fills_its_panel_and_shows_a_page_of_rows() -> None:
    graph = panel("gpu-health", "What the driver asks for")

    def heights(rows: int) -> list[float]:
        gpus = [Series(f"n GPU {n}", {}, [(0.0, 0.0), (60.0, 0.0)]) for n in range(rows)]
        return [
            float(h)
            for h in re.findall(r'height="([\d.]+)" fill', states(graph, gpus, TIMES, 600, 300))
        ]

    assert heights(2)[0] > 90
    assert len(heights(26)) == 20


@pytest.mark.parametrize("uid", BOARDS)
def test_a_page_shows_every_panel_and_says_where_there_is_nothing(uid: str) -> None:
    board = BOARDS[uid]
    html = page(board, {}, TIMES, "made up")
    empty = [p["fieldConfig"]["defaults"].get("noValue", "No data") for p in panels(board)]
    for text in set(empty):
        assert html.count(f"<div class='none'>{text}</div>") == empty.count(text)
    assert "made up" in html


@pytest.mark.parametrize("uid", BOARDS)
def test_a_page_draws_every_panel_that_has_data(uid: str) -> None:
    def query(expr: str, instant: bool) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        assert "$" not in re.sub(r'"\$1"', "", expr)
        labels = {"node": "n<1>", "gpu": "0", "GPU": "n GPU 0", "health_watch": "MEM"}
        return [(labels, [(0.0, 0.0), (60.0, 1.0)])]

    board = BOARDS[uid]
    values = {**defaults(board), **TIMES.variables(15)}
    series_by_panel = {p["id"]: query_panel(p, values, query) for p in panels(board)}
    html = page(board, series_by_panel, TIMES, "")
    assert "No data" not in html
    assert "n<1>" not in html  # labels are text, never markup
