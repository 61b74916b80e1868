"""Scaling on GPU load: the queries on Prometheus' own evaluator, and what goes round them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.config.settings import Settings
from gpuboot.config.settings import parse_settings as load_settings
from gpuboot.monitoring import rules
from gpuboot.usage.autoscaling import (
    METRIC,
    SERIES,
    Workload,
    adapter_values,
    hpa,
    load_query,
    scaled_object,
)
from tests.tools import promtool

WEB = Workload("team-a", "web")
FIRST, SECOND = "web-6d5f9c7b8d-abcde", "web-6d5f9c7b8d-fghij"


def sm(pod: str, values: str, namespace: str = "team-a") -> dict[str, str]:
    return {"series": f'{SERIES}{{namespace="{namespace}",pod="{pod}"}}', "values": values}


def phase(pod: str, name: str = "Running", value: int = 1) -> dict[str, str]:
    labels = f'namespace="team-a",pod="{pod}",phase="{name}"'
    return {"series": f"kube_pod_status_phase{{{labels}}}", "values": f"{value}x20"}


def evaluate(
    tmp_path: Path, series: list[dict[str, str]], expression: str, expected: list[float]
) -> None:
    """Fails unless the expression gives these values at the tenth minute."""
    test = {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": "10m",
                "exp_samples": [{"labels": "{}", "value": value} for value in expected],
            }
        ],
    }
    path = tmp_path / "test.yaml"
    path.write_text(
        yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m", "tests": [test]})
    )
    result = subprocess.run(
        [promtool(), "test", "rules", path], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        pytest.param(
            [sm(FIRST, "0.5x20"), sm(SECOND, "0.25x20"), phase(FIRST), phase(SECOND)],
            [0.75],
            id="two replicas",
        ),
        pytest.param([sm(FIRST, "0x20"), phase(FIRST)], [0], id="idle is a number"),
        pytest.param(
            [sm(FIRST, "0.5x20"), phase(FIRST), phase(SECOND)], [], id="one replica is unknown"
        ),
        pytest.param(
            [sm(FIRST, "0.5x3 _x20"), sm(SECOND, "0.5x20"), phase(FIRST), phase(SECOND)],
            [],
            id="one replica's samples have stopped",
        ),
        pytest.param([phase(FIRST)], [], id="no samples at all"),
        pytest.param([sm(FIRST, "0.5x20")], [], id="no kube-state-metrics"),
        pytest.param(
            [sm(FIRST, "0.5x20"), phase(FIRST), phase(SECOND, "Pending"), phase(SECOND, value=0)],
            [0.5],
            id="a replica that waits for a GPU has no load yet",
        ),
        pytest.param(
            [sm(FIRST, "0.5x20"), sm("web-canary-6d5f9c7b8d-abcde", "1x20"), phase(FIRST)],
            [0.5],
            id="another workload whose name begins alike",
        ),
        pytest.param(
            [sm(FIRST, "0.5x20"), sm(FIRST, "1x20", "team-b"), phase(FIRST)],
            [0.5],
            id="another namespace",
        ),
    ],
)
def test_load_is_the_sum_of_all_replicas_or_nothing(
    tmp_path: Path, series: list[dict[str, str]], expected: list[float]
) -> None:
    evaluate(tmp_path, series, load_query(WEB), expected)


def test_the_adapters_query(tmp_path: Path) -> None:
    [rule] = adapter_values(Settings())["rules"]["custom"]
    filled = (
        rule["metricsQuery"]
        .replace("<<.Series>>", SERIES)
        .replace("<<.LabelMatchers>>", f'namespace="team-a",pod=~"{FIRST}"')
        .replace("by (<<.GroupBy>>)", "")
    )
    assert "<<" not in filled
    evaluate(tmp_path, [sm(FIRST, "0.5x20"), sm(SECOND, "1x20")], filled, [0.5])
    evaluate(tmp_path, [sm(SECOND, "1x20")], filled, [])
    query = f"count({rule['seriesQuery']})"
    evaluate(tmp_path, [sm(FIRST, "0.5x20")], query, [1])


def test_the_series_is_one_that_our_rules_make() -> None:
    groups = rules.groups(Settings(), ())
    assert SERIES in {rule.get("record") for group in groups for rule in group["rules"]}


@pytest.mark.parametrize(
    ("kind", "pod", "matches"),
    [
        ("Deployment", "web-6d5f9c7b8d-abcde", True),
        ("Deployment", "web-canary-6d5f9c7b8d-abcde", False),
        ("Deployment", "web-0", False),
        ("StatefulSet", "web-0", True),
        ("StatefulSet", "web-12", True),
        ("StatefulSet", "web-a-0", False),
    ],
)
def test_pods_of_a_workload(kind: str, pod: str, matches: bool) -> None:
    assert bool(re.fullmatch(Workload("a", "web", kind).pods, pod)) is matches


def test_names_with_dots_stay_names() -> None:
    assert not re.fullmatch(Workload("a", "v1.2", "StatefulSet").pods, "v1x2-0")


def test_keda_keeps_replicas_when_it_knows_nothing() -> None:
    spec = scaled_object(WEB, Settings())["spec"]
    [trigger] = spec["triggers"]
    assert trigger["metadata"]["ignoreNullValues"] == "false"
    assert trigger["metricType"] == "AverageValue"  # the only one that fallback works with
    assert spec["fallback"]["behavior"] == "currentReplicas"
    assert all(isinstance(value, str) for value in trigger["metadata"].values())


def test_addresses_follow_the_settings() -> None:
    settings = load_settings({"monitoring": {"namespace": "mon"}})
    address = "http://kube-prometheus-stack-prometheus.mon.svc"
    assert adapter_values(settings)["prometheus"]["url"] == address
    [trigger] = scaled_object(WEB, settings)["spec"]["triggers"]
    assert trigger["metadata"]["serverAddress"] == f"{address}:9090"


def test_hpa_asks_for_the_adapters_metric() -> None:
    spec = hpa(Workload("team-a", "web", target=0.65))["spec"]
    assert spec["metrics"][0]["pods"] == {
        "metric": {"name": METRIC},
        "target": {"type": "AverageValue", "averageValue": "650m"},
    }
    assert spec["scaleTargetRef"]["name"] == "web"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 60.0}, "not between 0 and 1"),
        ({"min_replicas": 5, "max_replicas": 4}, "the lower first"),
        ({"min_replicas": 0}, "1 or more"),
        ({"kind": "DaemonSet"}, "neither"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workload("a", "web", **options)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["hpa", "web", "-n", "team-a"], "HorizontalPodAutoscaler"),
        (["keda", "web", "--kind", "StatefulSet"], "ScaledObject"),
        (["adapter", "--monitoring", "mon"], None),
    ],
)
def test_the_command_line(arguments: list[str], kind: str | None) -> None:
    result = CliRunner().invoke(app, ["autoscaling", *arguments])
    assert result.exit_code == 0, result.output
    assert yaml.safe_load(result.stdout).get("kind") == kind
    refusal = CliRunner().invoke(app, ["autoscaling", "hpa", "web", "--target", "60"])
    assert refusal.exit_code == 2
