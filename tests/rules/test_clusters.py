"""Two clusters with nodes of the same names in one Prometheus: neither hides the other's faults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from gpuboot.monitoring.rules.clusters import kept_apart
from tests.rules.model import Case
from tests.rules.suite import NODES, all_rules, closure, run, write_rules
from tests.rules.test_alerts import ALERTS, CASES, FIRST

_LONG = 3000
# that a cluster is there at all, for alerts on what is not
_NODE_PRESENT = {'kube_node_info{node="web1"}': f"1x{_LONG}"}
_EXTRA_SERIES = {"EtcdNotMonitored": _NODE_PRESENT, "EtcdBackupOld": _NODE_PRESENT}
_EXPECTED = {
    f'node:gpu_expected:count{{node="{node.name}"}}': f"{node.gpus}x{_LONG}"
    for node in NODES
    if node.gpus
}


@pytest.mark.parametrize(
    ("original", "loaded"),
    [
        ("max by (node) (x) == 0", "max by (cluster, node) (x) == 0"),
        ("sum(x) > 0", "sum by (cluster) (x) > 0"),
        ("avg(max by (node) (x))", "avg by (cluster) (max by (cluster, node) (x))"),
        ("a and on () b", "a and on (cluster) b"),
        ("a * on (node) group_left (team) b", "a * on (cluster, node) group_left (team) b"),
        ("max_over_time(cluster:gpu_power:sum[1h])", "max_over_time(cluster:gpu_power:sum[1h])"),
        ("sum without (job) (x)", "sum without (job) (x)"),
        (
            'absent(up{job="x"})',
            '(absent(up{job="x"}) or group by (cluster) (kube_node_info{cluster!=""})'
            ' unless on (cluster) up{job="x"})',
        ),
    ],
)
def test_expressions(original: str, loaded: str) -> None:
    assert kept_apart(original) == loaded


def _of(cluster: str, case: Case) -> dict[str, str]:
    series = {**_EXPECTED, **_EXTRA_SERIES.get(case.alert, {}), **case.series}
    return {_in(cluster, name): text for name, text in series.items()}


def _in(cluster: str, name: str) -> str:
    metric, _, labels = name.partition("{")
    inner = labels.removesuffix("}")
    return f'{metric}{{cluster="{cluster}"{"," if inner else ""}{inner}}}'


def _firing(alert: str, cluster: str) -> str:
    return f'ALERTS{{alertname="{alert}", alertstate="firing", cluster="{cluster}"}}'


def _sample(alert: str, cluster: str, labels: Mapping[str, str]) -> str:
    all_labels = {"alertname": alert, "alertstate": "firing", "cluster": cluster, **labels}
    inside = ", ".join(f'{name}="{value}"' for name, value in all_labels.items() if value)
    return f"ALERTS{{{inside}}}"


def _at(minute: float, case: Case) -> str:
    """The evaluation before that minute: ALERTS is a series, and has a sample for each alone."""
    return f"{int(minute * 60) // case.step * case.step}s"


def _well(case: Case) -> Case | None:
    """A course of the same alert in which it never fires."""
    candidates = (
        candidate
        for candidate in CASES
        if (candidate.alert, candidate.step) == (case.alert, case.step)
    )
    return next((candidate for candidate in candidates if not candidate.fires), None)


def test_an_alert_names_the_cluster_whose_fault_it_is(tmp_path: Path) -> None:
    rules = all_rules()
    # what is made of the inventory comes from each cluster as a series, with its name on it
    records = [rule for rule in rules[""] if not rule["expr"].startswith("vector(")]
    files = []
    for alert, case in FIRST.items():
        rule, well = rules[alert][0], _well(case)
        write_rules(tmp_path / f"{alert}.rules.yml", [*closure(rule["expr"], records), rule])
        series = _of("a", case) | (_of("b", well) if well else {})
        checks = [
            {
                "expr": _firing(alert, "a"),
                "eval_time": _at(minute, case),
                "exp_samples": [
                    {"labels": _sample(alert, "a", {**rule["labels"], **alert_labels}), "value": 1}
                    for alert_labels in alerts
                ],
            }
            for minute, alerts in case.fires.items()
        ] + [
            {"expr": _firing(alert, "b"), "eval_time": _at(minute, case), "exp_samples": []}
            for minute in (well.silent if well else ())
        ]
        test = {
            "interval": f"{case.step}s",
            "input_series": [{"series": name, "values": text} for name, text in series.items()],
            "promql_expr_test": checks,
        }
        suite = {
            "rule_files": [f"{alert}.rules.yml"],
            "evaluation_interval": f"{case.step}s",
            "tests": [test],
        }
        path = tmp_path / f"{alert}.yml"
        path.write_text(yaml.safe_dump(suite, sort_keys=False))
        files.append(path)
    result = run("test", "rules", *files)
    output = result.stdout.replace("  SUCCESS\n", "").replace("\n\n", "\n")
    assert result.returncode == 0, output
    assert FIRST.keys() == ALERTS.keys()
