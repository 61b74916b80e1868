"""Cases that the rules do not get right yet; each line goes with its mend."""

from __future__ import annotations

import pytest

BLANKS = "test_blank_values_are_no_values["
OPEN = (
    BLANKS,
    "test_rules_are_silent_on_idle_and_busy_gpus[a10g-g5",
    "test_rules_are_silent_on_idle_and_busy_gpus[t4",
    "test_rules_are_silent_on_idle_and_busy_gpus[vgpu-guest",
    "test_rules_are_silent_for_more_than_a_day[a10g-g5",
    "test_rules_are_silent_for_more_than_a_day[t4",
    "test_rules_are_silent_for_more_than_a_day[vgpu-guest",
)
ALERTS = ("-t4]", "-a10g-g5]", "-vgpu-guest]")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        alert = item.name.startswith("test_the_alerts")
        slow = alert and (item.name.endswith(ALERTS) or "exporter does not answer" in item.name)
        if item.name.startswith(OPEN):
            item.add_marker(pytest.mark.xfail(strict=True))
        elif slow:
            item.add_marker(pytest.mark.xfail(strict=False))
