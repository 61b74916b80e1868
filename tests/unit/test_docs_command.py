"""`gpuboot docs`: generated pages are written whole, or left as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app

runner = CliRunner()


def test_a_page_is_written_and_compared(tmp_path: Path) -> None:
    page = tmp_path / "settings.md"
    missing = runner.invoke(app, ["docs", "settings", str(page), "--check"])
    assert missing.exit_code == 1
    assert f"gpuboot docs settings {page}" in missing.output
    assert runner.invoke(app, ["docs", "settings", str(page)]).exit_code == 0
    assert page.read_text() == runner.invoke(app, ["docs", "settings"]).output
    assert runner.invoke(app, ["docs", "settings", str(page), "--check"]).exit_code == 0
    page.write_text("an older page\n")
    assert runner.invoke(app, ["docs", "settings", str(page), "--check"]).exit_code == 1
    assert page.read_text() == "an older page\n"


def test_a_table_that_fails_leaves_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "settings.md"
    page.write_text("the page\n")
    monkeypatch.setattr("gpuboot.docs.settings_page.settings_markdown", lambda: 1 / 0)
    assert runner.invoke(app, ["docs", "settings", str(page)]).exit_code != 0
    assert page.read_text() == "the page\n"


def test_a_comparison_needs_a_file() -> None:
    assert runner.invoke(app, ["docs", "settings", "--check"]).exit_code == 2
