"""Two clusters with nodes of the same names in one Prometheus: neither hides the other's faults."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuboot.monitoring.rules.clusters import kept_apart
from tests.rules.model import Case
from tests.rules.suite import (
    all_rules,
    check_firing,
    closure,
    from_inventory,
    in_cluster,
    input_series,
    run,
    write_rules,
)
from tests.rules.test_alerts import ALERTS, CASES, FIRST

_LONG = 3000
# that a cluster is there at all, for alerts on what is not
_NODE_PRESENT = {'kube_node_info{node="web1"}': f"1x{_LONG}"}
_EXTRA_SERIES = {"EtcdNotMonitored": _NODE_PRESENT, "EtcdBackupOld": _NODE_PRESENT}


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
    return in_cluster(cluster, {**_EXTRA_SERIES.get(case.alert, {}), **case.series})


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
    records = [rule for rule in rules[""] if not from_inventory(rule)]
    files = []
    for alert, case in FIRST.items():
        rule, well = rules[alert][0], _well(case)
        write_rules(tmp_path / f"{alert}.rules.yml", [*closure(rule["expr"], records), rule])
        series = _of("a", case) | (_of("b", well) if well else {})
        checks = [
            check_firing(case, "a", minute, [{**rule["labels"], **labels} for labels in alerts])
            for minute, alerts in case.fires.items()
        ] + [check_firing(case, "b", minute, []) for minute in (well.silent if well else ())]
        test = {
            "interval": f"{case.step}s",
            "input_series": input_series(series),
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
