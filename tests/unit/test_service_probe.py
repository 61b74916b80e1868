"""Pods that try Services: with kube-proxy's or CoreDNS' work gone, verification is not proven.

kube-proxy v1.36.3 in nftables mode can empty its own map `service-ips`: no Service answers any
more, while GPUs compute, Prometheus scrapes pods by address, and every link of theirs is green.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from kubernetes.client import V1Pod

from gpuboot.cluster.api import Cluster
from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.charts.monitoring_values import monitoring_values
from gpuboot.verify import outside_name, service_probe
from gpuboot.verify.checks import service_checks as checks
from gpuboot.verify.evidence import ServiceProbeResult
from gpuboot.verify.findings import Finding, verdict
from gpuboot.verify.service_probe import ServiceProbe, parse_log
from gpuboot.verify.session import Session
from tests.unit.evidence import SIZES, evidence, node, of, only
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import clock, run

__all__ = ["clock"]

NAME, ADDRESS = "kubernetes.default.svc.cluster.local", "10.96.0.1:443"
POD = ServiceProbeResult(node="gpu1", pod="services-gpu1", name=NAME, address=ADDRESS)


def evaluate(log: str) -> Finding:
    """What is found on gpu1 when its pod's log says this."""
    observed = evidence(service_probes=(parse_log(POD, log),))
    [finding] = checks.evaluate(observed.hosts[0], observed)
    return finding


def words(*terms: str) -> str:
    return "".join(f"gpuboot-services: {word}\n" for word in terms)


def test_a_pod_that_resolves_and_connects_passes() -> None:
    finding = evaluate(words("resolved", "connected"))
    assert (finding.status, finding.link, finding.node, finding.gpu_uuid) == (
        "pass",
        "services",
        "gpu1",
        None,
    )


def test_without_kube_proxy_the_remedy_is_kube_proxy() -> None:
    finding = evaluate(words("unresolved", "unconnected"))
    assert finding.status == "fail"
    assert finding.detail == (
        f"{ADDRESS} (Service default/kubernetes) does not answer and {NAME} is not resolved"
    )
    assert "k8s-app=kube-proxy --field-selector spec.nodeName=gpu1" in finding.remedy


def test_without_dns_the_remedy_is_coredns() -> None:
    finding = evaluate(words("unresolved", "connected"))
    assert (finding.status, finding.detail) == ("fail", f"{NAME} is not resolved")
    assert "k8s-app=kube-dns" in finding.remedy


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", "ends before the answer"),
        (words("resolved"), "ends before the answer"),
        (words("lacks getent"), "has no getent"),
    ],
)
def test_no_answer_is_unknown(log: str, expected: str) -> None:
    finding = evaluate(log)
    assert finding.status == "unknown"
    assert expected in finding.detail


def test_verification_fails_where_services_are_dead_on_one_node() -> None:
    assert verdict(run(FakeCluster()).findings) == "proven"
    findings = list(run(FakeCluster(services={"gpu2": "unresolved unconnected"})).findings)
    failed = only(findings, "fail")
    assert (failed.link, failed.node) == ("services", "gpu2")
    assert [item.node for item in of(findings, "pass", "services")] == ["gpu1"]


def test_a_node_that_gets_no_pods_is_not_covered() -> None:
    findings = list(run(FakeCluster(cordoned={"gpu2"})).findings)
    assert [item.node for item in of(findings, "not_covered", "services")] == ["gpu2"]


def test_busy_gpus_keep_nobody_from_trying_services() -> None:
    holders = {("gpu1", index): f"ml/train-{index}" for index in range(2)}
    findings = list(run(FakeCluster(gpu_holders=holders)).findings)
    assert {item.node for item in of(findings, "pass", "services")} == {"gpu1", "gpu2"}


def test_the_pod_asks_for_no_gpu() -> None:
    settings = parse_settings(
        {"runtime": {"mode": "runtimeclass"}, "cluster": {"dns_domain": "site.lan"}}
    )
    cluster = cast(Cluster, FakeCluster())
    probe = ServiceProbe(cluster, Session(cluster, lambda _: None, 1), settings)
    probe.read_address()
    manifest = probe._manifest("p", node("gpu1", 2))
    V1Pod.model_validate(manifest)
    [container] = manifest["spec"]["containers"]
    assert "resources" not in container
    assert "runtimeClassName" not in manifest["spec"]
    name = "kubernetes.default.svc.site.lan."
    query = outside_name.query("nvcr.io")
    assert container["command"][3:] == ["sh", name, "10.96.0.1", "443", "nvcr.io", query]


def own_pods(cluster: FakeCluster) -> set[str]:
    return {name for name in cluster.created_names if name.startswith("services-")}


def test_it_runs_beside_vectoradd_and_costs_no_pod() -> None:
    cluster = FakeCluster()
    assert verdict(run(cluster).findings) == "proven"
    assert own_pods(cluster) == set()


def test_a_node_without_a_free_gpu_gets_a_pod_for_it() -> None:
    cluster = FakeCluster(gpu_holders={("gpu1", index): f"ml/t-{index}" for index in range(2)})
    assert {item.node for item in of(list(run(cluster).findings), "pass", "services")} == set(SIZES)
    assert own_pods(cluster) == {"services-gpu1"}


def test_where_vectoradd_s_pod_fails_services_are_tried_all_the_same() -> None:
    cluster = FakeCluster(unlisted={("gpu2", 0)})
    findings = list(run(cluster).findings)
    assert {item.node for item in of(findings, "pass", "services")} == set(SIZES)
    assert {item.link for item in of(findings, "fail")} == {"workload"}


def scrapes(**monitoring: Any) -> list[dict[str, Any]]:
    settings = parse_settings({"cluster": {"dns_domain": "site.lan"}, "monitoring": monitoring})
    spec = monitoring_values(settings)["prometheus"]["prometheusSpec"]
    return list(spec.get("additionalScrapeConfigs", []))


def test_where_no_node_takes_vectoradd_s_pod_services_are_tried_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody's pods took the GPUs since they were counted: nobody ever ran the probe."""
    cluster = FakeCluster()
    create = cluster._create_pod

    def create_too_late(body: dict[str, Any]) -> dict[str, Any]:
        if body["metadata"]["name"].startswith("vectoradd-gpu1"):
            cluster.gpu_holders |= {("gpu1", 0): "ml/a", ("gpu1", 1): "ml/b"}
        return create(body)

    monkeypatch.setattr(cluster, "_create_pod", create_too_late)
    findings = [item for item in run(cluster).findings if item.node == "gpu1"]
    assert [item.status for item in findings if item.link == "services"] == ["pass"]
    assert {item.status for item in findings if item.link == "workload"} == {"not_covered"}


def test_prometheus_goes_the_way_of_pods_once() -> None:
    [job] = scrapes()
    assert job["static_configs"] == [{"targets": ["kube-dns.kube-system.svc.site.lan:9153"]}]
    [rule] = job["metric_relabel_configs"]
    assert rule == {"source_labels": ["__name__"], "regex": ".+", "action": "drop"}


def test_a_site_whose_scrapes_are_in_a_secret_keeps_them() -> None:
    """The chart would write `additionalScrapeConfigs` twice (88.5.3 prometheus.yaml)."""
    secret = {"additionalScrapeConfigsSecret": {"enabled": True, "name": "s", "key": "k"}}
    assert scrapes(values={"prometheus": {"prometheusSpec": secret}}) == []


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The programs of an image: bash and coreutils, a resolver, and no time lost by sleeping."""
    for name in ("bash", "timeout"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    for name, code in {"sleep": 0, "getent": 0}.items():
        program(tmp_path / name, code)
    return tmp_path


def program(path: Path, code: int) -> None:
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\nexit {code}\n")
    path.chmod(0o755)


def script_output(image: Path, port: int) -> str:
    command = ["/bin/sh", "-c", service_probe._SCRIPT, "sh", f"{NAME}.", "127.0.0.1", str(port)]
    result = subprocess.run(
        command, env={"PATH": str(image)}, capture_output=True, text=True, check=True, timeout=30
    )
    assert result.stderr == ""
    return result.stdout


def test_the_script_tells_what_it_finds(image: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert script_output(image, port) == words("resolved", "connected")
        program(image / "getent", 2)
        assert script_output(image, port) == words("unresolved", "connected")
    assert script_output(image, port) == words("unresolved", "unconnected")
    (image / "getent").unlink()
    assert script_output(image, port) == words("lacks getent")
