"""From cases to promtool's files: one pair per alert, with just the rules that it takes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from gpuboot.config import settings
from gpuboot.config.inventory import Node
from gpuboot.monitoring import rules
from gpuboot.telemetry.expressions import metric_names
from tests.rules.model import Case
from tests.tools import promtool

NODES = (
    Node("gpu1", "gpu1", "10.0.0.1", "control_plane", 2, True),
    Node("gpu2", "gpu2", "10.0.0.2", "worker", 4, False),
    Node("web1", "web1", "10.0.0.3", "worker", 0, False),
)
SETTINGS = settings.parse_settings(
    {
        "alerts": {"gpu_memory_near_full": ["ml", "batch.v2"]},
        "cost": {"gpu_hour": {"NVIDIA H100 80GB HBM3": 2.5, "*": 1}},
        "dcgm": "host",
        "backup": {"s3": {"bucket": "etcd", "access_key": "A", "secret_key": {"file": "f"}}},
    }
)
Rule = dict[str, Any]


def all_rules() -> dict[str, list[Rule]]:
    """Alert name, or "" for records -> rules, as Prometheus gets them."""
    by_alert: dict[str, list[Rule]] = {"": []}
    for group in rules.groups(SETTINGS, NODES):
        for rule in group["rules"]:
            by_alert.setdefault(rule.get("alert", ""), []).append(rule)
    return by_alert


def closure(expr: str, records: Iterable[Rule]) -> list[Rule]:
    """The records that an expression reads, and those that these read, in their order."""
    by_name: dict[str, list[Rule]] = {}
    for record in records:
        by_name.setdefault(record["record"], []).append(record)
    needed: set[str] = set()
    new = metric_names(expr) & by_name.keys()
    while new:
        needed |= new
        read = {n for name in new for rule in by_name[name] for n in metric_names(rule["expr"])}
        new = (read & by_name.keys()) - needed
    return [record for record in records if record["record"] in needed]


def write_rules(path: Path, rule_list: Iterable[Rule], annotations: bool = False) -> None:
    kept_rules = [
        rule if annotations else {key: rule[key] for key in rule if key != "annotations"}
        for rule in rule_list
    ]
    path.write_text(yaml.safe_dump({"groups": [{"name": "under-test", "rules": kept_rules}]}))


def write_cases(
    folder: Path,
    cases: Iterable[Case],
    annotations: bool = False,
    change: Callable[[Rule], Rule] = lambda rule: rule,
) -> list[Path]:
    """Files for `promtool test rules`, one per alert and step.

    + change: what to do to each alert first, to see whether its cases notice
    """
    rules_by_alert = all_rules()
    records = rules_by_alert[""]
    files = []

    def key(case: Case) -> tuple[str, int]:
        return case.alert, case.step

    for (alert, step), group in groupby(sorted(cases, key=key), key=key):
        rule = change(rules_by_alert[alert][0])
        write_rules(
            folder / f"{alert}.rules.yml", [*closure(rule["expr"], records), rule], annotations
        )
        suite = {
            "rule_files": [f"{alert}.rules.yml"],
            "evaluation_interval": f"{step}s",
            "tests": [_test(case, rule["labels"]) for case in group],
        }
        path = folder / f"{alert}.{step}.yml"
        path.write_text(yaml.safe_dump(suite, sort_keys=False))
        files.append(path)
    return files


def _test(case: Case, labels: Mapping[str, str]) -> Rule:
    checks = [
        {
            "eval_time": f"{round(minute * 60)}s",
            "alertname": case.alert,
            "exp_alerts": [{"exp_labels": {**labels, **alert_labels}} for alert_labels in alerts],
        }
        for minute, alerts in [*case.fires.items(), *((minute, []) for minute in case.silent)]
    ]
    return {
        "name": f"{case.alert}: {case.description}",
        "interval": f"{case.step}s",
        "input_series": [
            {"series": series, "values": values} for series, values in case.series.items()
        ],
        "alert_rule_test": checks,
    }


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """promtool with these arguments; its stdout and stderr together."""
    return subprocess.run(
        [promtool(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
