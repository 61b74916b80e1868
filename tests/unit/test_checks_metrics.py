"""Exporter, Prometheus, attribution, and the cluster-wide links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.cluster.pods import Pod
from gpuboot.verify.checks import metrics_checks as checks
from gpuboot.verify.checks import monitoring_checks
from gpuboot.verify.checks.metrics_checks import Limits
from gpuboot.verify.evidence import Rule, Target
from gpuboot.verify.findings import Finding
from tests.unit.evidence import (
    evidence,
    metrics,
    of,
    only,
    reading,
    scrape,
    series,
    uuid,
)

LIMITS = Limits(monitoring=True, max_age_s=60, interval_s=2)


def evaluate(limits: Limits = LIMITS, **changed: Any) -> list[Finding]:
    """What is found on gpu1; `changed`: of the metrics, or of the evidence."""
    keys = metrics().__dataclass_fields__.keys()
    observed_metrics = metrics(**{key: value for key, value in changed.items() if key in keys})
    remaining = {key: value for key, value in changed.items() if key not in keys}
    observed = evidence(metrics=observed_metrics, **remaining)
    return checks.evaluate(observed.hosts[0], observed, limits)


def gpu1(**first: Any) -> tuple[Any, ...]:
    """Prometheus' series with something else about the first GPU of gpu1."""
    return (reading("gpu1", 0, **({"age_s": 3.0} | first)), *series("gpu1", 2)[1:])


def test_all_three_links_pass_for_every_gpu() -> None:
    findings = evaluate()
    assert {(f.link, f.status) for f in findings} == {
        ("exporter", "pass"),
        ("prometheus", "pass"),
        ("attribution", "pass"),
    }
    assert len(findings) == 6


def test_without_monitoring_only_the_exporter_is_judged() -> None:
    assert {f.link for f in evaluate(Limits(monitoring=False, max_age_s=60, interval_s=2))} == {
        "exporter"
    }


def test_a_node_without_exporter_fails_with_the_label_in_the_remedy() -> None:
    failed = only(evaluate(exporters=(scrape("gpu2", 4),)), "fail")
    assert failed.link == "exporter"
    assert failed.node == "gpu1"
    assert "nvidia.com/gpu.deploy.dcgm-exporter" in failed.remedy


def test_two_exporters_on_a_node_fail() -> None:
    twice = (scrape("gpu1", 2), scrape("gpu1", 2, pod="dcgm-exporter-x"))
    assert "exporter.kind" in only(evaluate(exporters=twice), "fail").remedy


def test_an_exporter_that_cannot_be_read_fails() -> None:
    silent = scrape("gpu1", 0, error="502 Bad Gateway")
    assert "502" in only(evaluate(exporters=(silent,)), "fail").detail


def test_exporters_that_nobody_could_list_are_unknown() -> None:
    findings = evaluate(exporters=(), errors={"exporters": "GET /api/v1/pods: timeout"})
    assert only(findings, "unknown").link == "exporter"


def test_a_gpu_without_series_and_a_stranger_are_named() -> None:
    findings = of(evaluate(exporters=(scrape("gpu1", 1),)), "fail")
    assert [f.gpu_uuid for f in findings] == [uuid("gpu1", 1)]
    odd = scrape("gpu1", 2)
    odd = replace(odd, readings=(*odd.readings, reading("gpu2", 0)))
    assert only(evaluate(exporters=(odd,)), "fail").gpu_uuid == uuid("gpu2", 0)


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        ({"temperature": None}, "nvidia-smi shows temperature, the exporter does not"),
        ({"temperature": 0}, "temperature is 0"),
        ({"temperature": 400}, "temperature is 400"),
        ({"power": 0}, "power draw is 0"),
        ({"memory": None}, "nvidia-smi shows memory, the exporter does not"),
        ({"memory": 0}, "device memory is 0"),
        ({"anchored": False}, "DCGM_FI_DEV_SM_CLOCK"),
    ],
)
def test_values_that_no_gpu_has(value: dict[str, Any], detail: str) -> None:
    odd = scrape("gpu1", 2, readings=(reading("gpu1", 0, **value), reading("gpu1", 1)))
    failed = only(evaluate(exporters=(odd,)), "fail")
    assert detail in failed.detail
    assert failed.gpu_uuid == uuid("gpu1", 0)


@pytest.mark.parametrize(("earlier_s", "status"), [(5.0, "pass"), (20.0, "fail")])
def test_an_energy_counter_that_stands_still(earlier_s: float, status: str) -> None:
    findings = evaluate(exporters_before=(scrape("gpu1", 2),), before_age_s=earlier_s)
    assert {f.status for f in findings if f.link == "exporter"} == {status}


@pytest.mark.parametrize(
    ("targets", "detail"),
    [
        (
            (Target(job="nvidia-dcgm-exporter", node="gpu2", health="up"),),
            "no dcgm-exporter scrape target",
        ),
        (
            (Target(job="nvidia-dcgm-exporter", node="gpu1", health="down", error="refused"),),
            "down: refused",
        ),
        ((Target(job="nvidia-dcgm-exporter", node="gpu1", health="up"),) * 2, "2 scrape targets"),
    ],
)
def test_targets_that_are_wrong(targets: tuple[Target, ...], detail: str) -> None:
    failed = only(evaluate(targets=targets), "fail")
    assert (failed.link, detail in failed.detail) == ("prometheus", True)
    assert failed.remedy


@pytest.mark.parametrize(
    ("first", "detail"),
    [
        ({"node": "10.244.1.5"}, "say node 10.244.1.5"),
        ({"age_s": 75.0}, "75 s old, allowed 60"),
    ],
)
def test_series_that_are_wrong(first: dict[str, Any], detail: str) -> None:
    failed = only(evaluate(series=gpu1(**first)), "fail")
    assert detail in failed.detail
    assert failed.gpu_uuid == uuid("gpu1", 0)


def test_a_series_that_is_there_twice_fails() -> None:
    assert "2 series" in only(evaluate(series=(*gpu1(), *gpu1()[:1])), "fail").detail


def test_a_gpu_that_prometheus_lacks_fails_once() -> None:
    failed = only(evaluate(series=series("gpu1", 1)), "fail")
    assert (failed.link, failed.gpu_uuid) == ("prometheus", uuid("gpu1", 1))


def test_prometheus_without_an_answer_is_unknown() -> None:
    findings = evaluate(series=None, targets=None, errors={"prometheus": "503 no endpoints"})
    assert "503" in only(findings, "unknown").detail


@pytest.mark.parametrize("pod", ["", "gpu-operator/nvidia-dcgm-exporter-abcde"])
def test_a_held_gpu_whose_series_name_another_pod_fails(pod: str) -> None:
    failed = only(evaluate(series=gpu1(pod=pod)), "fail")
    assert failed.link == "attribution"
    assert "gpuboot-verify/vectoradd-gpu1-0 holds it" in failed.detail
    assert "DCGM_EXPORTER_KUBERNETES" in failed.remedy


def test_an_idle_gpu_that_named_the_exporter_fails() -> None:
    idle = (reading("gpu1", 0, pod="gpu-operator/nvidia-dcgm-exporter-abcde"),)
    failed = only(evaluate(idle_series=idle), "fail")
    assert "held no GPU" in failed.detail
    assert "labeldrop" in failed.remedy


def test_a_gpu_that_others_hold_passes_by_their_name_and_not_without() -> None:
    holding: dict[str, Any] = {
        "gpu_pods": (
            Pod(namespace="ml", name="train-0", node="gpu1", devices={"nvidia.com/gpu": 1}),
        ),
        "workload_results": (),
    }
    findings = evaluate(series=gpu1(pod="ml/train-0")[:1], **holding)
    assert "ml/train-0" in of(findings, "pass", "attribution")[0].detail
    findings = evaluate(series=gpu1(pod="")[:1], **holding)
    assert of(findings, "not_covered", "attribution")


def test_cluster_links_pass() -> None:
    findings = monitoring_checks.evaluate(metrics(), grafana=True)
    assert [(f.link, f.status) for f in findings] == [
        (link, "pass") for link in ("targets", "rules", "alertmanager", "dashboards")
    ]


def test_dashboards_are_asked_for_only_with_grafana() -> None:
    links = {f.link for f in monitoring_checks.evaluate(metrics(), grafana=False)}
    assert "dashboards" not in links


@pytest.mark.parametrize(
    ("state", "link", "detail"),
    [
        ({"targets": ()}, "targets", "no target"),
        (
            {
                "targets": (
                    Target(job="etcd", node="cp1", health="down", url="https://x", error="refused"),
                )
            },
            "targets",
            "etcd",
        ),
        ({"rules": ()}, "rules", "no rule"),
        (
            {"rules": (Rule(name="GPULost", health="err", error="parse error"),)},
            "rules",
            "GPULost: parse error",
        ),
        ({"alertmanagers": ()}, "alertmanager", "no Alertmanager"),
        ({"alertmanager_ready": False}, "alertmanager", "not ready"),
        ({"dashboards": 0}, "dashboards", "no dashboard"),
        ({"errors": {"grafana": "503"}}, "dashboards", "503"),
    ],
)
def test_cluster_links_fail_with_a_remedy(state: dict[str, Any], link: str, detail: str) -> None:
    failed = only(monitoring_checks.evaluate(metrics(**state), grafana=True), "fail")
    assert failed.link == link
    assert detail in failed.detail
    assert failed.remedy


@pytest.mark.parametrize(("health", "status"), [("unknown", "unknown"), ("down", "fail")])
def test_a_target_that_nobody_has_scraped_yet_is_unknown(health: str, status: str) -> None:
    """Of a long interval, or after Prometheus was restarted: that is no fault of anybody."""
    exporter = Target(job="nvidia-dcgm-exporter", node="gpu1", health=health)
    (finding,) = [f for f in evaluate(targets=(exporter,)) if f.link == "prometheus"]
    assert (finding.status, bool(finding.remedy)) == (status, True)
    state = metrics(targets=(Target(job="etcd", node="", health=health),))
    (finding,) = [f for f in monitoring_checks.evaluate(state, False) if f.link == "targets"]
    assert (finding.status, bool(finding.remedy)) == (status, True)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (Target(job="kubelet", node="gpu9", health="down", error="no route to host"), "pass"),
        (Target(job="kubelet", node="gpu1", health="down", error="no route to host"), "fail"),
        (Target(job="kubelet", node="", health="down", error="no route to host"), "fail"),
        (Target(job="node-exporter", node="gpu9", health="down", error="no route"), "fail"),
    ],
)
def test_the_kubelet_of_a_node_that_was_removed_is_no_fault(target: Target, status: str) -> None:
    """The targets of a site's own, whose names of nodes are not the cluster's, are judged."""
    answer = metrics(targets=(*(metrics().targets or ()), target))
    findings = monitoring_checks.evaluate(answer, grafana=False, cluster_nodes={"cp1", "gpu1"})
    assert {item.status for item in findings if item.link == "targets"} == {status}


def test_cluster_links_without_an_answer_are_unknown() -> None:
    silent = metrics(targets=None, rules=None, alertmanagers=None, dashboards=None)
    assert {f.status for f in monitoring_checks.evaluate(silent, grafana=True)} == {"unknown"}
