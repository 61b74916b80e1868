"""The queries of a report of costs, evaluated by Prometheus' own code over a known hour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuboot.telemetry import metric_names
from gpuboot.usage.cost.cost_question import queries
from tests.rules.model import series
from tests.rules.suite import all_rules, run, write_rules

# Half a minute between samples; of [3599s:60s] at 1 h the minutes 1 to 60 count.
STEP = 30
H100 = {"modelName": "NVIDIA H100 80GB HBM3"}
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
GPU_RESOURCE = {"resource": "nvidia_com_gpu"}
FIRST_HALF, ALL = "1x59 0x61", "1x120"
TRAIN = {"namespace": "ml", "pod": "train"}


def gpu(node: str, number: int, **labels: str) -> dict[str, str]:
    return {"node": node, "UUID": f"GPU-{node}-{number}", "gpu": str(number), **H100, **labels}


def world() -> dict[str, str]:
    """gpu1 has 2 GPUs: one pod holds one for half an hour, two share the other. gpu2 has 4, and is
    cordoned for the last 20 minutes and a third.
    """
    samples = {
        series("kube_node_status_condition", node=node, condition="Ready", status="true"): ALL
        for node in ("gpu1", "gpu2")
    }
    for node, cards in (("gpu1", 2), ("gpu2", 4)):
        samples[series("kube_node_info", node=node)] = ALL
        for kind in ("capacity", "allocatable"):
            name = f"kube_node_status_{kind}"
            samples[series(name, node=node, resource="nvidia_com_gpu")] = f"{cards}x120"
    samples[series("kube_node_spec_unschedulable", node="gpu1")] = "0x120"
    samples[series("kube_node_spec_unschedulable", node="gpu2")] = "0x79 1x41"
    samples[series("kube_pod_status_phase", **TRAIN, phase="Running")] = FIRST_HALF
    samples[series("kube_pod_status_phase", **TRAIN, phase="Succeeded")] = "0x59 1x61"
    samples[
        series(
            "kube_pod_container_resource_requests",
            **TRAIN,
            container="c",
            node="gpu1",
            **GPU_RESOURCE,
        )
    ] = ALL
    samples[series("kube_namespace_labels", namespace="ml", label_team="research")] = ALL
    samples |= exported()
    return samples


def exported() -> dict[str, str]:
    samples = {}
    samples[series("DCGM_FI_PROF_SM_ACTIVE", **gpu("gpu1", 0, **TRAIN))] = "0.25x59 stale"
    for metric, value in ((ENGINE, "0.5"), ("DCGM_FI_DEV_POWER_USAGE", "300")):
        samples[series(metric, **gpu("gpu1", 0, **TRAIN))] = f"{value}x59 stale"
        samples[series(metric, **gpu("gpu1", 0))] = f"_x60 {'0' if metric == ENGINE else '60'}x60"
        for name in ("a", "b"):
            labels = gpu("gpu1", 1, namespace="web", pod=name)
            samples[series(metric, **labels)] = "0.8x120" if metric == ENGINE else "200x120"
    for number in (0, 1):
        card = gpu("gpu1", number)
        samples[series("DCGM_FI_DEV_SM_CLOCK", **card)] = "1000x120"
        # 100 W: 3e6 mJ in half a minute
        samples[series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", **card)] = "0+3000000x120"
    return samples


POD = {**TRAIN, "node": "gpu1"}
SHARED = [({"namespace": "web", "pod": name, "node": "gpu1", **H100}, 0.5 * 60) for name in "ab"]
EXPECTED_SAMPLES: dict[str, list[tuple[dict[str, str], float]]] = {
    "held": [({**POD, **GPU_RESOURCE}, 29)],
    "capacity": [({"node": "gpu1", **GPU_RESOURCE}, 120), ({"node": "gpu2", **GPU_RESOURCE}, 240)],
    "free": [
        ({"node": "gpu1", **GPU_RESOURCE}, 29 + 2 * 31),
        ({"node": "gpu2", **GPU_RESOURCE}, 4 * 39),
    ],
    "closed": [({"node": "gpu2", **GPU_RESOURCE}, 4 * 21)],
    "reported": [({"node": "gpu1"}, 60), ({"node": "gpu2"}, 60)],
    "promised": [({"node": "gpu1"}, 120), ({"node": "gpu2"}, 240)],
    "promised_minutes": [({"node": "gpu1"}, 60), ({"node": "gpu2"}, 60)],
    "cards": [({"node": "gpu1", **H100}, 120)],
    "devices": [({"node": "gpu1", **H100}, 120)],
    "seen": [({"node": "gpu1"}, 60)],
    "used": [({**POD, **H100}, 0.5 * 29), *[(pod_labels, 0.8 * n) for pod_labels, n in SHARED]],
    "sm": [({**POD, **H100}, 0.25 * 29)],
    "measured": [({**POD, **H100}, 29), *SHARED],
    "power_pod": [
        (POD, 300 * 29),
        *[
            ({k: v for k, v in pod_labels.items() if k != "modelName"}, 200 * n)
            for pod_labels, n in SHARED
        ],
    ],
    "power_node": [({"node": "gpu1"}, 300 * 29 + 60 * 31 + 200 * 60)],
    "teams": [({"namespace": "ml", "label_team": "research"}, 60)],
    "energy": [({"node": "gpu1"}, 0.2)],
}


def check(name: str, expression: str) -> dict[str, Any]:
    return {
        "expr": f"round({expression}, 0.001)",
        "eval_time": "1h",
        "exp_samples": [
            {"labels": series("", **labels), "value": round(value, 3)}
            for labels, value in EXPECTED_SAMPLES[name]
        ],
    }


def test_the_queries_have_the_values_they_promise(tmp_path: Path) -> None:
    expressions = queries(3600)
    assert set(expressions) == set(EXPECTED_SAMPLES)
    write_rules(tmp_path / "rules.yml", all_rules()[""])
    suite = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": f"{STEP}s",
                "input_series": [{"series": s, "values": v} for s, v in world().items()],
                "promql_expr_test": [check(name, expressions[name]) for name in expressions],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(suite, sort_keys=False))
    result = run("test", "rules", tmp_path / "test.yml")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("step", [60, 3600])
def test_the_queries_read_what_is_recorded_or_scraped_anyway(step: int) -> None:
    records = {record["record"] for record in all_rules()[""]}
    metrics = {name for text in queries(step).values() for name in metric_names(text)}
    recorded = {name for name in metrics if ":" in name}
    assert recorded <= records
    assert all(name.startswith(("kube_", "DCGM_FI_")) for name in metrics - recorded)
