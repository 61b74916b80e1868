"""The proof of the GPUs of Docker hosts."""

from __future__ import annotations

import json
import time
from dataclasses import Field, fields, replace
from typing import Any

import pytest

from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.docker import docker_checks, docker_runner
from gpuboot.docker.docker_remedies import DOCKER_HOSTS
from gpuboot.verify.checks import host_checks as hosts
from gpuboot.verify.checks.remedies import Remedies
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence, Target
from gpuboot.verify.findings import verdict
from gpuboot.verify.runner import VerificationResult
from tests.unit import mig_evidence, recordings
from tests.unit.evidence import host, metrics, series, uuid


class Site:
    """Answers as the monitoring host would, with two GPUs that are well; tests break some of it."""

    def __init__(self) -> None:
        self.exposition = "".join(
            f'{metric}{{UUID="{uuid("gpu1", index)}",gpu="{index}"}} {value}\n'
            for index in range(2)
            for metric, value in (
                ("DCGM_FI_DEV_GPU_TEMP", 40),
                ("DCGM_FI_DEV_POWER_USAGE", 70),
                ("DCGM_FI_DEV_FB_USED", 4),
                ("DCGM_FI_DEV_FB_FREE", 81000),
                ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0),
            )
        )
        self.node = "gpu1"
        self.refusals: list[str] = []
        self.silent = ""

    def fetch(self, url: str) -> str:
        if self.silent and self.silent in url:
            raise docker_runner.NoAnswer("connection refused")
        if url.endswith("/metrics"):
            return self.exposition
        if url.endswith("/-/ready"):
            return "OK"
        return json.dumps({"status": "success", "data": self.data(url)})

    def data(self, url: str) -> dict[str, Any]:
        if "last_reload_successful" in url:
            name = "_config_last_reload_successful"
            return self.samples([{"__name__": program + name} for program in self.refusals], "0")
        if "/query" in url:
            return self.samples(
                [{"UUID": uuid("gpu1", index), "node": self.node} for index in range(2)], "99"
            )
        if "/targets" in url:
            target = {"labels": {"job": "dcgm-exporter", "node": self.node}, "health": "up"}
            return {"activeTargets": [target]}
        if "/rules" in url:
            return {"groups": [{"rules": [{"name": "GPULost", "health": "ok"}]}]}
        if url.endswith("/alerts"):
            return {"alerts": []}
        return {"activeAlertmanagers": [{"url": "http://127.0.0.1:9093"}]}

    @staticmethod
    def samples(labels: list[dict[str, str]], value: str) -> dict[str, Any]:
        return {"result": [{"metric": item, "value": [100.0, value]} for item in labels]}

    def search(self) -> str:
        return json.dumps([{"uid": "gpu-cluster"}, {"uid": "other"}])


SETTINGS = parse_settings({"verify": {"timeout_s": 10}})


PASSED = "GPU 0: NVIDIA H100 (UUID: {})\nTest PASSED\n"


def proven(
    monkeypatch: pytest.MonkeyPatch,
    site: Site,
    hosts: list[Host] | None = None,
    outputs: dict[str, tuple[int, str]] | None = None,
) -> VerificationResult:
    monkeypatch.setattr(docker_runner, "settle_s", lambda settings: 0.0)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    nodes = (Node("mon1", "mon1", "192.0.2.11", "docker", 0, leader=False, monitor=True),
             Node("gpu1", "gpu1", "192.0.2.21", "docker", 2, leader=False))  # fmt: skip
    gatherer = docker_runner.MetricsCollector(nodes, SETTINGS, site.fetch, site.search)
    ids = [uuid("gpu1", index) for index in range(2)]
    results = outputs or {gpu: (0, PASSED.format(gpu)) for gpu in ids}
    trials = [
        docker_runner.workload_result("gpu1", gpu, out, code, 1.0)
        for gpu, (code, out) in results.items()
    ]
    return docker_runner.verify(
        hosts or [host()], SETTINGS, gatherer, lambda: trials, lambda line: None
    )


def failed(proof: VerificationResult) -> set[tuple[str, str | None]]:
    return {(item.link, item.gpu_uuid) for item in proof.findings if item.status != "pass"}


def test_sound_hosts_are_proven_at_every_link(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = proven(monkeypatch, Site())
    assert verdict(proof.findings) == "proven"
    links = {(item.link, item.gpu_uuid) for item in proof.findings if item.gpu_uuid}
    expected = {*docker_checks.LINKS} - hosts.NAMES
    assert links == {(link, uuid("gpu1", i)) for link in expected for i in range(2)}


def test_a_container_that_saw_another_gpu_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = uuid("gpu1", 0), uuid("gpu1", 1)
    outputs = {first: (0, PASSED.format(second)), second: (125, "docker: no such runtime")}
    proof = proven(monkeypatch, Site(), outputs=outputs)
    assert failed(proof) == {("workload", first), ("workload", second)}


@pytest.mark.parametrize(
    ("changes", "links"),
    [
        ({"refusals": ["prometheus"]}, {"rules"}),
        ({"node": "10.0.0.1"}, {"prometheus"}),
        ({"silent": "192.0.2.21"}, {"exporter", "health"}),
        ({"silent": ":9093"}, {"alertmanager"}),
        ({"exposition": ""}, {"exporter", "health"}),
    ],
)
def test_what_metrics_lack_is_found_and_nothing_speaks_of_pods(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], links: set[str]
) -> None:
    site = Site()
    for name, value in changes.items():
        setattr(site, name, value)
    proof = proven(monkeypatch, site)
    assert {link for link, _ in failed(proof)} == links
    for item in proof.findings:
        if item.status != "pass":
            assert item.remedy
            assert "kubectl" not in item.remedy
            assert "deploys/site.py" not in item.remedy


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"default_runtime": "runc"}, "fail"),
        ({"runtime_handlers": ("runc",)}, "fail"),
        ({"runtime_handlers": ()}, "unknown"),
    ],
)
def test_dockerds_default_runtime(changes: dict[str, Any], status: str) -> None:
    (finding,) = docker_checks.runtime(host(**changes))
    assert finding.status == status


@pytest.mark.parametrize("field", fields(Remedies), ids=lambda field: field.name)
def test_no_remedy_for_docker_hosts_speaks_of_a_cluster(field: Field[str]) -> None:
    remedy = getattr(DOCKER_HOSTS, field.name)
    assert remedy
    for word in ("kubectl", "pod", "namespace", "ServiceMonitor", "site.py", "drain"):
        assert word not in remedy


def test_a_gpu_without_a_sample_s_age_is_told_what_to_do() -> None:
    old = [replace(item, age_s=None) for item in series("gpu1", 2)]
    targets = (Target(job="dcgm-exporter", node="gpu1", health="up"),)
    observed = Evidence(
        hosts=(host(),), nodes={}, metrics=metrics(series=tuple(old), targets=targets)
    )
    findings = [f for f in docker_checks.evaluate(observed, SETTINGS) if f.link == "prometheus"]
    assert findings
    assert all(item.status == "unknown" and item.remedy for item in findings)


def test_processes_on_a_gpu_are_counted() -> None:
    first, second = uuid("gpu1", 0), uuid("gpu1", 1)
    output = f"{first}, 4711\n{first}, 4712\n{second}, 5\nNo devices were found\n"
    assert docker_runner.processes_by_gpu(output) == {first: 2, second: 1}


def test_mig_devices_of_a_docker_host_are_tried_each_by_itself() -> None:
    """`docker run --gpus device=MIG-…`; a GPU that was cut into nothing is told."""
    empty = replace(recordings.MIXED[0], uuid="GPU-0", instances=())
    machine = mig_evidence.machine((*recordings.MIXED, empty))
    devices = [device.uuid for device in machine.devices]
    trials = [
        docker_runner.workload_result(
            machine.node,
            device_uuid,
            f"MIG 1g.10gb Device 0: (UUID: {device_uuid})\nTest PASSED",
            0,
            2.0,
        )
        for device_uuid in devices
    ]
    observed = Evidence(hosts=(machine,), nodes={}, workload_results=tuple(trials))
    findings = [*docker_checks.runtime(machine), *docker_checks.workload(machine, observed)]
    passed = {(item.link, item.gpu_uuid) for item in findings if item.status == "pass"}
    assert passed == {
        (link, device_uuid) for link in ("runtime", "workload") for device_uuid in devices
    }
    remaining = [item for item in findings if item.status != "pass"]
    assert {(item.status, item.gpu_uuid) for item in remaining} == {("not_covered", "GPU-0")}
