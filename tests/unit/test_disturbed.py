"""A verification that something disturbs: pods that are taken away, answers of something else."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.verify.findings import verdict
from gpuboot.verify.session import LABELS
from tests.unit.evidence import of, uuid
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import clock, run

__all__ = ["clock"]


@pytest.mark.parametrize("reason", ["", "Evicted", "DeadlineExceeded"])
def test_a_pod_that_does_not_stay_is_tried_again_and_blames_no_gpu(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted ("") or evicted, every time; a pod that its own time ended is a failure."""
    cluster = FakeCluster()
    create = cluster._create_pod

    def create_for_a_moment(body: dict[str, Any]) -> dict[str, Any]:
        pod = create(body)
        name = body["metadata"]["name"]
        if name.startswith("vectoradd-gpu1"):
            cluster.pods[name]["status"] |= {"phase": "Failed", "reason": reason}
            if not reason:
                del cluster.pods[name]
            cluster.placed = {gpu: at for gpu, at in cluster.placed.items() if at[0] != name}
        return pod

    monkeypatch.setattr(cluster, "_create_pod", create_for_a_moment)
    monkeypatch.setattr(cluster, "_log", lambda *_: "")
    findings = [item for item in run(cluster).findings if item.node == "gpu1"]
    failed = [item for item in findings if (item.link, item.status) == ("workload", "fail")]
    unknown = of(findings, "unknown", "workload")
    assert bool(failed) == (reason == "DeadlineExceeded")
    assert {item.gpu_uuid for item in unknown} >= {uuid("gpu1", 0), uuid("gpu1", 1)}


def test_its_namespace_is_free_of_a_standard_that_the_cluster_has_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """AdmissionConfiguration may say `restricted`, and nobody can label what is not there yet."""
    cluster, labels = FakeCluster(), dict[str, str]()
    create = cluster._create_namespace

    def create_and_note(body: dict[str, Any]) -> dict[str, Any]:
        labels.update(body["metadata"]["labels"])
        return create(body)

    monkeypatch.setattr(cluster, "_create_namespace", create_and_note)
    run(cluster)
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert labels.items() >= LABELS.items(), "by which the next one finds it"


@pytest.mark.parametrize("answer", [None, [], "hello", {"status": "success", "data": None}])
@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/targets", "targets"), ("/rules", "rules"), ("/api/v1/alerts", "health"),
        ("/alertmanagers", "alertmanager"), ("/api/v2/alerts", "alerting"),
    ],
)  # fmt: skip
def test_an_answer_of_another_shape_is_unknown(
    path: str, link: str, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something else behind the Service of Prometheus ended the verification without a report."""
    cluster = FakeCluster()
    answers = cluster._answer
    monkeypatch.setattr(
        cluster, "_answer", lambda p, query: answer if p.endswith(path) else answers(p, query)
    )
    findings = list(run(cluster).findings)
    assert link in {item.link for item in of(findings, "unknown") + of(findings, "fail")}
    assert verdict(findings) != "proven"
