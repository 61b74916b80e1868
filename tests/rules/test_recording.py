"""Recording rules: their values, and what must not change them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuboot.monitoring import rules
from gpuboot.telemetry import metric_names
from tests.rules.model import series
from tests.rules.suite import NODES, SETTINGS, all_rules, run, write_rules
from tests.rules.worlds import WORLDS, World
from tests.rules.worlds_applications import APPLICATIONS
from tests.rules.worlds_dcgm import WORLDS as OF_DCGM
from tests.rules.worlds_watches import WORLDS as WATCHES

ALL = [*WORLDS, *APPLICATIONS, *OF_DCGM, *WATCHES]


def _suite(world: World) -> dict[str, Any]:
    names = {record["record"] for record in all_rules()[""]}
    checks = []
    for expr, samples in world.gives.items():
        expected = [
            (series(expr if expr in names else _name(expr, names), **labels), value)
            for labels, value in samples
        ]
        checks.append(
            {"expr": expr, "eval_time": f"{round(world.minute * 60)}s",
             "exp_samples": [{"labels": labels, "value": value} for labels, value in expected]}
        )  # fmt: skip
    return {
        "name": world.description,
        "interval": f"{world.step}s",
        "input_series": [{"series": s, "values": v} for s, v in world.series.items()],
        "promql_expr_test": checks,
    }


def _name(expr: str, names: set[str]) -> str:
    """The name that a result keeps: a selection keeps it, a function drops it."""
    name = expr.partition("{")[0]
    return name if name in names else ""


def test_records_have_the_values_they_promise(tmp_path: Path) -> None:
    write_rules(tmp_path / "rules.yml", all_rules()[""])
    suite = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "30s",
        "tests": [_suite(world) for world in ALL],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(suite, sort_keys=False))
    result = run("test", "rules", tmp_path / "test.yml")
    assert result.returncode == 0, result.stdout


def test_every_record_is_tried() -> None:
    text = " ".join(expr for world in ALL for expr in world.gives)
    names = {record["record"] for record in all_rules()[""]}
    assert not {name for name in names if name not in text}


@pytest.mark.parametrize("reason", ["sync_boost", "sw_thermal", "power_brake"])
def test_every_reason_of_throttling_is_recorded(reason: str) -> None:
    records = [r for r in all_rules()[""] if r["record"] == "gpu:throttle:ratio5m"]
    assert reason in {record["labels"]["reason"] for record in records}


def test_the_records_come_before_what_reads_them() -> None:
    """Rules of a group are evaluated in order; one that reads a later one is always late."""
    for records in rules.recordings(SETTINGS, NODES).values():
        earlier: set[str] = set()
        later = {record.name for record in records}
        for record in records:
            later_only = {name for name in later - earlier if name != record.name}
            assert not {name for name in later_only if name in record.expr}, record.name
            earlier.add(record.name)


def test_new_xids_are_told_from_records_of_one_group_alone() -> None:
    """Two kinds of series whose last samples differ in age are not forgotten at the same moment.

    Prometheus was away for seven minutes, a GPU's last sample was seconds younger than the last
    count of its XIDs: for one evaluation the GPU "was watched" and its old XID "was not there".
    """
    groups = {
        record.name: name
        for name, records in rules.recordings(SETTINGS, NODES).items() for record in records
    }  # fmt: skip
    for record in all_rules()[""]:
        if record["record"].startswith("gpu:xid_errors:new"):
            assert {groups.get(name) for name in metric_names(record["expr"])} == {"gpus"}
