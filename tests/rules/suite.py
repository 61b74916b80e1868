"""From cases to promtool's files: one pair per alert, with just the rules that it takes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from gpuboot.config import settings
from gpuboot.config.inventory import Node
from gpuboot.monitoring import rules
from gpuboot.telemetry.expressions import metric_names
from tests.rules.model import Case, Labels, series
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
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_EXPECTED = {
    series("node:gpu_expected:count", node=node.name): f"{node.gpus}x3000"
    for node in NODES
    if node.gpus
}


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
    groups = {"groups": [{"name": "under-test", "rules": kept_rules}]}
    path.write_text(yaml.dump(groups, Dumper=DUMPER))


def write_cases(
    folder: Path,
    cases: Iterable[Case],
    annotations: bool = False,
    change: Callable[[Rule], Rule] = lambda rule: rule,
) -> list[Path]:
    """Files for `promtool test rules`, one per alert and step.

    An evaluation costs little more with many series than with few: the first case that fires has a
    cluster's own Prometheus, all others share a central one, each as a cluster of its own.

    + change: what to do to each alert first, to see whether its cases notice
    """
    rules_by_alert = all_rules()
    records = rules_by_alert[""]
    files = []

    def key(case: Case) -> tuple[str, int]:
        return case.alert, case.step

    for (alert, step), group in groupby(sorted(cases, key=key), key=key):
        rule = change(rules_by_alert[alert][0])
        needed = closure(rule["expr"], records)
        # `absent()` of a series is one question for the whole Prometheus
        reads_absence = any("absent(" in reader["expr"] for reader in (*needed, rule))
        single, shared = _split(list(group), reads_absence)
        tests = [_test(case, rule["labels"]) for case in single]
        files += _write_suite(folder, f"{alert}.{step}", [*needed, rule], tests, annotations)
        central = [*(rule for rule in needed if not from_inventory(rule)), rule]
        tests = [_shared_test(shared, rule["labels"])] if shared else []
        files += _write_suite(folder, f"{alert}.{step}.clusters", central, tests, annotations)
    return files


def _split(cases: list[Case], reads_absence: bool) -> tuple[list[Case], list[Case]]:
    """The cases that have a Prometheus of their own, and those that share one."""
    first = next((case for case in cases if case.fires), cases[0])
    single = [case for case in cases if reads_absence or case is first]
    return single, [case for case in cases if case not in single]


def _write_suite(
    folder: Path, name: str, rule_list: Sequence[Rule], tests: list[Rule], annotations: bool
) -> list[Path]:
    if not tests:
        return []
    write_rules(folder / f"{name}.rules.yml", rule_list, annotations)
    suite = {
        "rule_files": [f"{name}.rules.yml"],
        "evaluation_interval": tests[0]["interval"],
        "tests": tests,
    }
    path = folder / f"{name}.yml"
    path.write_text(yaml.dump(suite, Dumper=DUMPER, sort_keys=False))
    return [path]


def _test(case: Case, labels: Mapping[str, str]) -> Rule:
    checks = [
        {
            "eval_time": f"{round(minute * 60)}s",
            "alertname": case.alert,
            "exp_alerts": [{"exp_labels": {**labels, **alert_labels}} for alert_labels in alerts],
        }
        for minute, alerts in case.checks()
    ]
    return {
        "name": f"{case.alert}: {case.description}",
        "interval": f"{case.step}s",
        "input_series": input_series(case.series),
        "alert_rule_test": checks,
    }


def _shared_test(cases: Sequence[Case], labels: Mapping[str, str]) -> Rule:
    """Cases of one alert at the same time, in clusters that are called as the cases are."""
    samples: dict[str, str] = {}
    checks = []
    for case in cases:
        # a name in PromQL's quotes
        cluster = case.description.replace("\\", "").replace('"', "'")
        samples |= in_cluster(cluster, case.series)
        checks += [
            check_firing(case, cluster, minute, [{**labels, **alert} for alert in alerts])
            for minute, alerts in case.checks()
        ]
    return {
        "name": f"{cases[0].alert}: {len(cases)} cases",
        "interval": f"{cases[0].step}s",
        "input_series": input_series(samples),
        "promql_expr_test": checks,
    }


def from_inventory(rule: Rule) -> bool:
    """Whether a record is made of a cluster's inventory; a central Prometheus gets its series."""
    return str(rule["expr"]).startswith("vector(")


def in_cluster(cluster: str, samples: Mapping[str, str]) -> dict[str, str]:
    """A cluster's series as a central Prometheus has them, those of its inventory included."""
    cluster_series = {}
    for name, text in {**_EXPECTED, **samples}.items():
        metric, _, labels = name.partition("{")
        inner = labels.removesuffix("}")
        cluster_series[f'{metric}{{cluster="{cluster}"{"," if inner else ""}{inner}}}'] = text
    return cluster_series


def check_firing(
    case: Case, cluster: str, minute: float, alerts: Iterable[Labels]
) -> dict[str, Any]:
    """promtool's check that a cluster has just these alerts of the case's name at a minute.

    An empty label is one that a series does not have.
    """
    # the evaluation before that minute: ALERTS is a series, and has a sample for each alone
    at = int(minute * 60) // case.step * case.step
    state = {"alertname": case.alert, "alertstate": "firing", "cluster": cluster}
    return {
        "expr": series("ALERTS", **state),
        "eval_time": f"{at}s",
        "exp_samples": [
            {
                "labels": series("ALERTS", **state, **{k: v for k, v in labels.items() if v}),
                "value": 1,
            }
            for labels in alerts
        ],
    }


def input_series(samples: Mapping[str, str]) -> list[dict[str, str]]:
    """Series -> values as promtool takes them."""
    return [{"series": name, "values": text} for name, text in samples.items()]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """promtool with these arguments; its stdout and stderr together."""
    # it lives for seconds: collecting garbage seldom, and on one core, saves a third of them
    environment = {**os.environ, "GOGC": "400", "GOMAXPROCS": "1"}
    return subprocess.run(
        [promtool(), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
