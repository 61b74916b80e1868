"""Plans of a site that lives: parts that are switched off, and another worker."""

from __future__ import annotations

import json
from typing import Any

from tests.plan.test_changes import call, plan_lines, run_living

NO_MONITORING = {"monitoring": {"enabled": False}}
NO_OPERATOR = {"gpu_operator": {"enabled": False}, "exporter": {"kind": "chart"}}
GIVE_UP = ("--data", "gpuboot_delete_volumes=monitoring")


def plan_output(*arguments: str, settings: dict[str, Any], **environment: str) -> list[str]:
    """What a plan says is changed, and what is kept."""
    lines = plan_lines(run_living("--dry", *arguments, settings=settings, **environment))
    return [line.strip() for line in lines if line.startswith("  ")]


def test_monitoring_that_is_switched_off_goes_without_its_volumes() -> None:
    lines = plan_output(settings=NO_MONITORING, PLAN_VOLUME="1")
    assert "- Helm release kube-prometheus-stack: was kube-prometheus-stack 88.5.3" in lines
    assert "- PrometheusRule monitoring/gpuboot: was present" in lines
    assert [line.split(":")[1].strip() for line in lines if line.startswith("=")] == [
        "volumes of Prometheus, Alertmanager and Grafana, and Grafana's password",
        "definitions of monitoring.coreos.com",
        "namespace monitoring",
    ]
    assert not [line for line in lines if "local-path" in line], "a volume needs it"


def test_volumes_go_only_if_somebody_says_so() -> None:
    lines = plan_output(*GIVE_UP, settings=NO_MONITORING)
    assert not [line for line in lines if "= kept: volumes" in line]
    assert "- StorageClass local-path: was there" in lines, "no volume needs it"
    rejected = run_living("--dry", *GIVE_UP)
    assert rejected.returncode == 1
    assert "only while it is switched off" in rejected.stderr


def test_the_operator_goes_before_another_exporter_comes() -> None:
    lines = plan_output(settings=NO_OPERATOR)
    removal_index = lines.index("- Helm release gpu-operator: was gpu-operator v26.7.0")
    new = next(line for line in lines if line.startswith("+ Helm release dcgm-exporter"))
    assert removal_index < lines.index(new)
    assert any(line.startswith("= kept: pods that run on GPUs") for line in lines)


def test_another_worker_changes_itself_and_the_cluster_and_no_other_host() -> None:
    command = ["gpuboot", "plan", "tests/plan/inventories/existing.py"]
    result = call(command, PLAN_NEW="1")
    assert result.returncode == 0, result.stderr
    phases: dict[str, list[str]] = {}
    for step in json.loads(result.stdout)["steps"]:
        for item in step["hosts"]:
            phases.setdefault(item["host"], []).append(f"{step['phase']} | {step['operation']}")
    assert phases.keys() == {"@fake/cp1", "@fake/gpu2"}
    assert phases["@fake/cp1"] == [
        "Kubernetes | Install the approver of kubelets' certificates",
        "Kubernetes | Label and taint the nodes",
        "Monitoring | Apply rules, dashboards and network policies",
        "Monitoring | Reload Prometheus rules",
    ]
    assert len(phases["@fake/gpu2"]) > 10
