"""The values in what facts' commands print."""

import pytest

from gpuboot.hosts.fact_output import FactOutputError, Fields

LINES = [
    "name\t a b ",
    "name\tc",
    "columns\tx\t\ty\t",
    "count\t 7",
    "text\taGk=",
    "json\t{}",
    "end\tok",
]


def test_values_by_key() -> None:
    values = Fields(LINES)
    assert values.all("name") == ["a b", "c"]
    assert values.raw("name") == [" a b ", "c"]
    assert values.first("name") == "a b"
    assert values.rows("columns") == [["x", "", "y", ""]]
    assert values.words("name", 2) == [["a", "b"], ["c", ""]]
    assert values.pairs("name") == {"a": "b", "c": ""}
    assert (values.number("count"), values.text("text"), values.json("json")) == (7, "hi", {})


def test_a_key_that_was_not_printed() -> None:
    values = Fields(LINES)
    assert "gone" not in values
    assert (values.all("gone"), values.first("gone"), values.rows("gone")) == ([], "", [])
    assert (values.number("gone"), values.text("gone"), values.json("gone")) == (0, "", None)


def test_keys_without_values_and_another_separator() -> None:
    values = Fields(["nouveau", "loaded 595.91.07"], separator=" ", last=None)
    assert "nouveau" in values
    assert values.first("loaded") == "595.91.07"


@pytest.mark.parametrize("last", ["end", "clock"])
def test_output_without_its_last_line_is_not_whole(last: str) -> None:
    with pytest.raises(FactOutputError, match="ends early"):
        Fields([line for line in LINES if not line.startswith(last)], last=last)


def test_what_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="seven"):
        Fields(["count\tseven", "end\tok"]).number("count")
