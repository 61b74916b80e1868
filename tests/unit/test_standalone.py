"""Docker hosts: who is who, what they must be, dockerd's file, and the proof of their GPUs."""

from __future__ import annotations

import json
import time
from dataclasses import Field, fields, replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Entry, Node
from gpuboot.config.settings import parse_settings
from gpuboot.docker import checks, daemon, runner
from gpuboot.docker.inventory import is_of_docker_hosts, plan
from gpuboot.docker.preflight import checks as preflight_checks
from gpuboot.docker.remedies import DOCKER_HOSTS
from gpuboot.hosts.connectivity import endpoints
from gpuboot.hosts.node_state import parse
from gpuboot.hosts.preflight import evaluate
from gpuboot.verify.checks.remedies import Remedies
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence, Target
from gpuboot.verify.findings import verdict
from gpuboot.verify.runner import VerificationResult
from tests.unit import recordings, test_checks_mig
from tests.unit.evidence import host, metrics, series, uuid
from tests.unit.test_nodestate import ANSWER

GPU = Entry("gpu1", ("gpu_hosts",), {"gpus": 8, "address": "192.0.2.21"})
MONITOR = Entry("mon1", ("monitor",), {"address": "192.0.2.11"})


def causes(entries: list[Entry]) -> list[str]:
    return [problem.cause for problem in plan(entries)[1]]


def test_the_monitor_comes_first_and_a_host_may_be_both() -> None:
    nodes, problems = plan([GPU, MONITOR])
    assert not problems
    assert [(node.name, node.monitor, node.gpus) for node in nodes] == [
        ("mon1", True, 0), ("gpu1", False, 8),
    ]  # fmt: skip
    (node,), problems = plan([replace(GPU, groups=("gpu_hosts", "monitor"))])
    assert not problems
    assert node.monitor
    assert not node.leader
    assert node.gpus == 8
    assert is_of_docker_hosts(["all", "monitor"])
    assert not is_of_docker_hosts(["all", "control_plane"])


@pytest.mark.parametrize(
    ("entries", "cause"),
    [
        ([GPU], "no host is in group monitor"),
        ([GPU, MONITOR, replace(MONITOR, host="m2", data={"address": "192.0.2.12"})], "2 hosts"),
        ([MONITOR, replace(GPU, data={"address": "192.0.2.21"})], "promises no GPU"),
        ([replace(MONITOR, data={**MONITOR.data, "gpus": 2})], "not in group gpu_hosts"),
        ([GPU, replace(MONITOR, groups=("monitor", "workers"))], "is in group workers"),
        ([GPU, MONITOR, Entry("x", ("prod",), {})], "neither group gpu_hosts nor monitor"),
        ([GPU, replace(MONITOR, data={"address": "192.0.2.21"})], "have the same address"),
    ],
)
def test_what_is_wrong_with_an_inventory_is_told(entries: list[Entry], cause: str) -> None:
    assert any(cause in found for found in causes(entries)), causes(entries)


NODE = Node("gpu1", "gpu1", "10.0.0.5", "docker", gpus=1, leader=False, monitor=True)
STATE = replace(parse(ANSWER), kubeconfigs={}, ports={}, packages={}, units={})


def problems(settings: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    parsed = parse_settings({"preflight": {"max_clock_skew_s": 1e12}, **(settings or {})})
    states = {"gpu1": replace(STATE, **changes)}
    asked = preflight_checks(parsed)
    return [item.cause for item in evaluate((NODE,), states, parsed, versions.lock(parsed), asked)]


def test_a_docker_host_need_not_be_fit_for_kubernetes() -> None:
    before = problems()
    assert problems(cgroup=1, swap=("/swapfile",), kernel_features=frozenset({"overlay"})) == before


@pytest.mark.parametrize(
    ("settings", "changes", "cause"),
    [
        ({}, {"packages": {"docker.io": "20"}}, "distribution's package docker.io"),
        ({}, {"kubeconfigs": {"/etc/kubernetes/kubelet.conf": "x"}}, "node of a Kubernetes"),
        ({}, {"ports": {9090: "cockpit"}}, "TCP port 9090 is in use by cockpit"),
        ({}, {"kernel_features": frozenset()}, "lacks overlay"),
        ({"exporter": {"tls_secret": "x", "kind": "chart"}}, {}, "exporter.tls_secret names"),
        ({"mirrors": {"images": {"*": "http://m/v2/x"}}}, {}, "none that Docker can pull from"),
        ({"mirrors": {"images": {"*": "https://m/x"}}}, {}, "none that Docker can pull from"),
        ({"standalone": {"grafana_port": 9090}}, {}, "ports are the same"),
        (
            {"alertmanager": {"slack": {"webhook": {"secret": "a/b"}}}},
            {},
            "there are no Secrets without Kubernetes",
        ),
    ],
)
def test_what_keeps_docker_hosts_from_running_is_told(
    settings: dict[str, Any], changes: dict[str, Any], cause: str
) -> None:
    new = set(problems(settings, **changes)) - set(problems())
    assert any(cause in found for found in new), new


def test_a_docker_host_downloads_nothing_of_kubernetes() -> None:
    asked = endpoints(parse_settings({}), NODE)
    assert "download.docker.com:443" in asked
    assert "registry-1.docker.io:443" in asked
    assert not {"pkgs.k8s.io:443", "registry.k8s.io:443", "get.helm.sh:443"} & set(asked)
    assert "registry-1.docker.io:443" not in endpoints(
        parse_settings({"standalone": {"grafana": False}}), NODE
    )


NVIDIA = {
    "default-runtime": "nvidia",
    "runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}},
}


@pytest.mark.parametrize(
    ("present", "swarm", "more"),
    [
        ({}, False, {"live-restore": True}),
        ({"live-restore": False}, False, {"live-restore": False}),
        ({}, True, {}),
        ({"log-driver": "journald"}, False, {"log-driver": "journald", "live-restore": True}),
    ],
)
def test_dockerds_file_keeps_what_is_not_ours(
    present: dict[str, Any], swarm: bool, more: dict[str, Any]
) -> None:
    assert daemon.configuration(present, {**present, **NVIDIA}, False, swarm) == {**NVIDIA, **more}


def test_other_runtimes_stay() -> None:
    present = {"runtimes": {"kata": {"path": "kata-runtime"}}}
    found = daemon.configuration(present, NVIDIA, False, swarm=False)
    assert set(found["runtimes"]) == {"kata", "nvidia"}


def test_a_proxy_of_the_unit_takes_the_place_of_the_files() -> None:
    present = {"proxies": {"http-proxy": "http://user:password@p:1"}, "live-restore": True}
    assert daemon.configuration(present, {}, True, swarm=False) == {"live-restore": True}
    assert daemon.configuration(present, {}, False, swarm=False) == present


def test_only_what_dockerd_cannot_reload_restarts_it() -> None:
    assert not daemon.needs_restart({}, {**NVIDIA, "live-restore": True})
    assert daemon.needs_restart(NVIDIA, {**NVIDIA, "proxies": {"http-proxy": "http://p"}})
    assert daemon.parse("") == {}
    with pytest.raises(ValueError, match="not a JSON object"):
        daemon.parse("[]")


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
            )
        )
        self.node = "gpu1"
        self.refused: list[str] = []
        self.silent = ""

    def ask(self, url: str) -> str:
        if self.silent and self.silent in url:
            raise runner.NoAnswer("connection refused")
        if url.endswith("/metrics"):
            return self.exposition
        if url.endswith("/-/ready"):
            return "OK"
        return json.dumps({"status": "success", "data": self.data(url)})

    def data(self, url: str) -> dict[str, Any]:
        if "last_reload_successful" in url:
            name = "_config_last_reload_successful"
            return self.samples([{"__name__": who + name} for who in self.refused], "0")
        if "/query" in url:
            return self.samples(
                [{"UUID": uuid("gpu1", index), "node": self.node} for index in range(2)], "99"
            )
        if "/targets" in url:
            target = {"labels": {"job": "dcgm-exporter", "node": self.node}, "health": "up"}
            return {"activeTargets": [target]}
        if "/rules" in url:
            return {"groups": [{"rules": [{"name": "GPULost", "health": "ok"}]}]}
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
    monkeypatch.setattr(runner, "settle_s", lambda settings: 0.0)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    nodes = (Node("mon1", "mon1", "192.0.2.11", "docker", 0, leader=False, monitor=True),
             Node("gpu1", "gpu1", "192.0.2.21", "docker", 2, leader=False))  # fmt: skip
    gatherer = runner.MetricsCollector(nodes, SETTINGS, site.ask, site.search)
    ids = [uuid("gpu1", index) for index in range(2)]
    said = outputs or {gpu: (0, PASSED.format(gpu)) for gpu in ids}
    trials = [
        runner.workload_result("gpu1", gpu, out, code, 1.0) for gpu, (code, out) in said.items()
    ]
    return runner.verify(hosts or [host()], SETTINGS, gatherer, lambda: trials, lambda line: None)


def failed(proof: VerificationResult) -> set[tuple[str, str | None]]:
    return {(item.link, item.gpu_uuid) for item in proof.findings if item.status != "pass"}


def test_sound_hosts_are_proven_at_every_link(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = proven(monkeypatch, Site())
    assert verdict(proof.findings) == "proven"
    links = {(item.link, item.gpu_uuid) for item in proof.findings if item.gpu_uuid}
    assert links == {(link, uuid("gpu1", i)) for link in checks.LINKS for i in range(2)}


def test_a_container_that_saw_another_gpu_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = uuid("gpu1", 0), uuid("gpu1", 1)
    said = {first: (0, PASSED.format(second)), second: (125, "docker: no such runtime")}
    proof = proven(monkeypatch, Site(), outputs=said)
    assert failed(proof) == {("workload", first), ("workload", second)}


@pytest.mark.parametrize(
    ("changes", "links"),
    [
        ({"refused": ["prometheus"]}, {"rules"}),
        ({"node": "10.0.0.1"}, {"prometheus"}),
        ({"silent": "192.0.2.21"}, {"exporter"}),
        ({"silent": ":9093"}, {"alertmanager"}),
        ({"exposition": ""}, {"exporter"}),
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
    (found,) = checks.runtime(host(**changes))
    assert found.status == status


@pytest.mark.parametrize("field", fields(Remedies), ids=lambda field: field.name)
def test_no_remedy_for_docker_hosts_speaks_of_a_cluster(field: Field[str]) -> None:
    remedy = getattr(DOCKER_HOSTS, field.name)
    assert remedy
    for word in ("kubectl", "pod", "namespace", "ServiceMonitor", "site.py", "drain"):
        assert word not in remedy


def test_a_gpu_without_a_sample_s_age_is_told_what_to_do() -> None:
    old = [replace(item, age_s=None) for item in series("gpu1", 2)]
    targets = (Target(job="dcgm-exporter", node="gpu1", health="up"),)
    seen = Evidence(hosts=(host(),), nodes={}, metrics=metrics(series=tuple(old), targets=targets))
    found = [f for f in checks.evaluate(seen, SETTINGS) if f.link == "prometheus"]
    assert found
    assert all(item.status == "unknown" and item.remedy for item in found)


def test_processes_on_a_gpu_are_counted() -> None:
    first, second = uuid("gpu1", 0), uuid("gpu1", 1)
    said = f"{first}, 4711\n{first}, 4712\n{second}, 5\nNo devices were found\n"
    assert runner.processes_by_gpu(said) == {first: 2, second: 1}


def test_mig_devices_of_a_docker_host_are_tried_each_by_itself() -> None:
    """`docker run --gpus device=MIG-…`; a GPU that was cut into nothing is told."""
    empty = replace(recordings.MIXED[0], uuid="GPU-0", instances=())
    machine = test_checks_mig.machine((*recordings.MIXED, empty))
    devices = [device.uuid for device in machine.devices]
    trials = [
        runner.workload_result(
            machine.node, one, f"MIG 1g.10gb Device 0: (UUID: {one})\nTest PASSED", 0, 2.0
        )
        for one in devices
    ]
    seen = Evidence(hosts=(machine,), nodes={}, workload_results=tuple(trials))
    found = [*checks.runtime(machine), *checks.workload(machine, seen)]
    passed = {(item.link, item.gpu_uuid) for item in found if item.status == "pass"}
    assert passed == {(link, one) for link in ("runtime", "workload") for one in devices}
    rest = [item for item in found if item.status != "pass"]
    assert {(item.status, item.gpu_uuid) for item in rest} == {("not_covered", "GPU-0")}
