"""Docker hosts: who is who, what they must be, dockerd's file, and the proof of their GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Entry, Node
from gpuboot.config.settings import parse_settings
from gpuboot.docker import daemon
from gpuboot.hosts.node_state import parse
from gpuboot.preflight.connectivity import endpoints
from gpuboot.preflight.docker_inventory import is_of_docker_hosts, plan
from gpuboot.preflight.docker_problems import checks as preflight_checks
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_node_state import ANSWER

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
    assert any(cause in text for text in causes(entries)), causes(entries)


NODE = Node("gpu1", "gpu1", "10.0.0.5", "docker", gpus=1, leader=False, monitor=True)
STATE = replace(parse(ANSWER), kubeconfigs={}, ports={}, packages={}, units={})


def problems(settings: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    parsed = parse_settings({"preflight": {"max_clock_skew_s": 1e12}, **(settings or {})})
    states = {"gpu1": replace(STATE, **changes)}
    checks = preflight_checks(parsed)
    return [item.cause for item in evaluate((NODE,), states, parsed, versions.lock(parsed), checks)]


def test_a_docker_host_need_not_be_fit_for_kubernetes() -> None:
    before = problems()
    assert problems(cgroup=1, swap=("/swapfile",), kernel_features=frozenset({"overlay"})) == before


@pytest.mark.parametrize(
    ("settings", "changes", "cause"),
    [
        ({}, {"packages": {"docker-compose-v2": "2"}}, "distribution's package docker-compose-v2"),
        ({}, {"kubeconfigs": {"/etc/kubernetes/kubelet.conf": "x"}}, "node of a Kubernetes"),
        ({}, {"ports": {9090: "cockpit"}}, "TCP port 9090 is in use by cockpit"),
        ({}, {"kernel_features": frozenset()}, "lacks overlay"),
        ({"mirrors": {"images": {"*": "http://m/v2/x"}}}, {}, "none that Docker can pull from"),
        ({"mirrors": {"images": {"*": "https://m/x"}}}, {}, "none that Docker can pull from"),
        ({"standalone": {"ports": {"grafana": 9090}}}, {}, "ports are the same"),
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
    assert any(cause in text for text in new), new


def test_a_docker_host_downloads_nothing_of_kubernetes() -> None:
    addresses = endpoints(parse_settings({}), NODE)
    assert "download.docker.com:443" in addresses
    assert "registry-1.docker.io:443" in addresses
    assert not {"pkgs.k8s.io:443", "registry.k8s.io:443", "get.helm.sh:443"} & set(addresses)
    assert "registry-1.docker.io:443" not in endpoints(
        parse_settings({"monitoring": {"grafana": False}}), NODE
    )


NVIDIA = {
    "default-runtime": "nvidia",
    "runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}},
}


@pytest.mark.parametrize(
    ("present", "swarm", "extra"),
    [
        ({}, False, {"live-restore": True}),
        ({"live-restore": False}, False, {"live-restore": False}),
        ({}, True, {}),
        ({"log-driver": "journald"}, False, {"log-driver": "journald", "live-restore": True}),
    ],
)
def test_dockerds_file_keeps_what_is_not_ours(
    present: dict[str, Any], swarm: bool, extra: dict[str, Any]
) -> None:
    assert daemon.configuration(present, {**present, **NVIDIA}, False, swarm) == {**NVIDIA, **extra}


def test_other_runtimes_stay() -> None:
    present = {"runtimes": {"kata": {"path": "kata-runtime"}}}
    configuration = daemon.configuration(present, NVIDIA, False, swarm=False)
    assert set(configuration["runtimes"]) == {"kata", "nvidia"}


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
