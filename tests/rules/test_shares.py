"""GPUs that pods share: activity and watts are divided by the shares that each pod holds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuboot.monitoring.dashboards import gpu_hours
from gpuboot.usage.cost.cost_question import EACH_MINUTE
from lab.dashboard_preview.panels import ALL, interpolate
from tests.rules.model import series
from tests.rules.suite import all_rules, closure, run, write_rules

H100 = "NVIDIA H100 80GB HBM3"
ENGINE, WATTS = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_POWER_USAGE"
CLOCK, UTIL = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_UTIL"
# of each GPU: pod -> its containers, of which each holds so many shares
Gpu = dict[str, list[int]]
NAMED_CASES: dict[str, list[Gpu]] = {
    "a pod with two shares of four, and two with one": [{"a": [2], "b": [1], "c": [1]}],
    "two shares of four, and one; the fourth is free": [{"a": [2], "b": [1]}],
    "two containers of a pod": [{"a": [1, 1], "b": [1]}],
    "each pod on two GPUs, with other shares of each": [{"a": [3], "b": [1]}, {"a": [1], "b": [2]}],
    "one pod alone": [{"a": [1]}],
    "all of a GPU by one pod": [{"a": [4]}],
}


def _generated_layouts() -> Iterator[list[Gpu]]:
    chance = random.Random(34)
    for _ in range(40):
        gpus: list[Gpu] = []
        for _ in range(chance.randint(1, 3)):
            pods = chance.sample("abcdef", chance.randint(1, 5))
            gpus.append(
                {pod: [chance.randint(1, 4) for _ in range(chance.randint(1, 2))] for pod in pods}
            )
        yield gpus


CASES = [*NAMED_CASES.values(), *_generated_layouts()]


def _exported(gpus: list[Gpu], node: str, profiled: bool) -> Iterator[tuple[str, str]]:
    """Series of one node. Each GPU is 80 % busy at 300 W."""
    values = {ENGINE: "0.8", WATTS: "300", CLOCK: "1400"}
    if not profiled:
        del values[ENGINE]
    for number, pods in enumerate(gpus):
        card = {"node": node, "UUID": f"GPU-{node}-{number}", "gpu": str(number), "modelName": H100}
        share = 0
        yield series(UTIL, **card), "80x20"  # of the whole device
        for pod, containers in pods.items():
            for place, count in enumerate(containers):
                for _ in range(count):
                    pod_labels = {"namespace": "ml", "pod": pod, "container": f"c{place}"}
                    labels = {**card, **pod_labels, "vgpu": str(share)}
                    for metric, value in values.items():
                        yield series(metric, **labels), f"{value}x20"
                    yield series(UTIL, **labels, pod_uid=pod), "20x20"
                    share += 1


def _parts(gpus: list[Gpu]) -> dict[str, float]:
    """GPUs that each pod has, by its shares of those that are held."""
    parts: dict[str, float] = {}
    for pods in gpus:
        share_total = sum(sum(containers) for containers in pods.values())
        for pod, containers in pods.items():
            parts[pod] = parts.get(pod, 0.0) + sum(containers) / share_total
    return parts


def _query_case(expression: str, expected: dict[str, float], **labels: str) -> dict[str, Any]:
    samples = [
        {"labels": series("", namespace="ml", pod=pod, **labels), "value": round(value, 6)}
        for pod, value in expected.items()
    ]
    return {"expr": f"round({expression}, 0.000001)", "eval_time": "10m", "exp_samples": samples}


def _promtool(folder: Path, tests: list[dict[str, Any]], recorded: bool = True) -> str:
    records = [
        rule for rule in all_rules()[""] if recorded or rule["record"] != "gpu:shares_held:count"
    ]
    expressions = {query["expr"] for test in tests for query in test["promql_expr_test"]}
    write_rules(folder / "rules.yml", closure("\n".join(expressions), records))
    suite = {"rule_files": ["rules.yml"], "evaluation_interval": "30s", "tests": tests}
    (folder / "suite.yml").write_text(yaml.safe_dump(suite, sort_keys=False))
    result = run("test", "rules", folder / "suite.yml")
    return "" if result.returncode == 0 else result.stdout


def _test(gpus: list[Gpu], queries: list[dict[str, Any]], profiled: bool = True) -> dict[str, Any]:
    exported = _exported(gpus, "gpu1", profiled)
    input_series = [{"series": name, "values": values} for name, values in exported]
    return {"interval": "1m", "input_series": input_series, "promql_expr_test": queries}


@pytest.mark.parametrize("profiled", [True, False], ids=["", "without profiling fields"])
def test_activity_and_watts_are_divided_by_shares(profiled: bool, tmp_path: Path) -> None:
    tests = []
    for gpus in CASES:
        parts = _parts(gpus)
        assert sum(parts.values()) == pytest.approx(len(gpus)), "nothing is lost or counted twice"
        used = {pod: 0.8 * part for pod, part in parts.items()}
        watts = {pod: 300 * part for pod, part in parts.items()}
        expression = interpolate(gpu_hours.USED, {"namespace": ALL, "pod": ALL, "node": ALL})
        queries = [
            _query_case(EACH_MINUTE["measured"], parts, node="gpu1", modelName=H100),
            _query_case(EACH_MINUTE["used"], used, node="gpu1", modelName=H100),
            _query_case(EACH_MINUTE["power_pod"], watts, node="gpu1"),
            _query_case(f"sum by (namespace, pod) ({expression})", used),
        ]
        tests.append(_test(gpus, queries, profiled))
    assert _promtool(tmp_path, tests) == ""


def test_before_shares_were_recorded_pods_count_alike(tmp_path: Path) -> None:
    """A report of days before an upgrade of gpuboot."""
    gpus: list[Gpu] = [{"a": [2], "b": [1]}]
    queries = [_query_case(EACH_MINUTE["used"], {"a": 0.4, "b": 0.4}, node="gpu1", modelName=H100)]
    assert _promtool(tmp_path, [_test(gpus, queries)], recorded=False) == ""
