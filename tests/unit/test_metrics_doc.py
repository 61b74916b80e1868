"""docs/metrics.md: every field is explained, and every query in it reads what is collected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.docs.metrics_page import metrics_markdown
from gpuboot.telemetry import BY_NAME, FIELDS, Limit, Shape, collected, not_collected, series

TEXT = metrics_markdown()
QUERIES = [
    query.strip()
    for block in re.findall(r"```promql\n(.*?)```", TEXT, re.DOTALL)
    for query in block.strip().splitlines()
]


def test_every_field_stands_in_one_table_with_its_limits() -> None:
    for field in FIELDS:
        start = f"| `{field.name}` | {field.id or 'exporter'} | "
        [row] = [line for line in TEXT.splitlines() if line.startswith(start)]
        assert field.help in row
        for limit in field.limits:
            assert limit.value in row


def test_every_limit_is_used() -> None:
    used = {limit for field in FIELDS for limit in field.limits}
    assert used == set(Limit)


@pytest.mark.parametrize("query", QUERIES)
def test_queries_read_what_is_collected(query: str) -> None:
    assert not_collected(query, collected(parse_settings({}))) == set()


def test_there_are_queries() -> None:
    assert len(QUERIES) >= 3


def test_full_names_in_the_text_are_of_the_table() -> None:
    names = set(re.findall(r"`(DCGM_(?:FI|EXP)_[A-Z0-9_]+)`", TEXT))
    assert names - set(BY_NAME) == {"DCGM_FI_DEV_PCIE_TX_THROUGHPUT"}, "the one that is retired"


def test_links_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", TEXT)) <= anchors
    labels = set(re.findall(r"\]\[([^\]]+)\]", TEXT))
    assert labels == set(re.findall(r"^\[([^\]]+)\]: https://", TEXT, re.MULTILINE))


def test_sizes_are_those_that_are_counted() -> None:
    limits = (Limit.VGPU, Limit.FAN, Limit.BEFORE_AMPERE, Limit.NVLINK_5)
    total = series(parse_settings({}), Shape(100, 8, missing=limits)).total
    assert f"{total:,}" in TEXT


def test_no_line_of_prose_is_too_long_to_read() -> None:
    source = Path(__file__).parents[2] / "templates" / "docs" / "metrics.md.j2"
    for line in source.read_text(encoding="utf-8").splitlines():
        assert len(line) <= 130 or line.startswith(("|", "[", "`")), line
