"""GPUs without Kubernetes: one machine with Docker, bare to proven, and what later runs touch."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import Lab, fresh_lab, until

pytestmark = pytest.mark.lab

LINKS = {"pci", "driver", "nvidia-smi", "runtime", "workload", "exporter", "health", "prometheus"}
COMMAND = ["pyinfra", "inventories/lab_docker.py", "deploys/standalone.py", "-y", "--json"]


@pytest.fixture(scope="module")
def docker() -> Iterator[Lab]:
    """One machine that has GPUs and watches them."""
    with fresh_lab("dockertest", "--docker") as running:
        yield running


def started(lab: Lab) -> dict[str, str]:
    """When each container was started."""
    script = "docker ps -q | xargs docker inspect --format '{{.Name}} {{.State.StartedAt}}'"
    return dict(line.split() for line in lab.ssh("node1", script).splitlines())


def test_every_gpu_is_proven_without_a_cluster(docker: Lab) -> None:
    report = json.loads((docker.reports / "latest/verify.json").read_text())
    assert report["verdict"] == "proven", report
    assert report["totals"]["gpus"] == 2
    by_gpu: dict[str, set[str]] = {}
    for item in report["findings"]:
        if item["gpu_uuid"]:
            by_gpu.setdefault(item["gpu_uuid"], set()).add(item["link"])
    assert list(by_gpu.values()) == [LINKS, LINKS]
    assert set(report["links"].values()) == {"pass"}


def test_a_second_run_changes_nothing_and_restarts_nothing(docker: Lab) -> None:
    before = started(docker)
    assert set(before) == {
        f"/gpuboot-{service}-1"
        for service in ("prometheus", "alertmanager", "node-exporter", "dcgm-exporter")
    }
    assert docker.command(COMMAND).changes == []
    assert started(docker) == before


def test_prometheus_reads_a_change_without_a_restart(docker: Lab) -> None:
    before = started(docker)
    settings = {"monitoring": {"scrape_interval": "7s"}}
    assert len(docker.command(COMMAND, settings=settings).changes) == 1
    config = docker.ssh("node1", "curl -fsS http://127.0.0.1:9090/api/v1/status/config")
    assert "scrape_interval: 7s" in config
    assert started(docker) == before


def test_docker_compose_itself_takes_the_project(docker: Lab) -> None:
    assert docker.ssh("node1", "docker compose -f /opt/gpuboot/compose.yaml config -q") == ""


def test_what_others_wrote_for_dockerd_holds_and_nonsense_is_refused(docker: Lab) -> None:
    path = "/etc/docker/daemon.json"
    config = json.loads(docker.ssh("node1", f"cat {path}"))
    assert config["default-runtime"] == "nvidia"
    assert config["features"] == {"time-namespaces": False}  # the lab's package wrote it
    docker.ssh("node1", f"cp {path} /root/kept; echo '{{\"no-such-key\": 1}}' > {path}")
    try:
        rejected = docker.command(COMMAND)
        assert rejected.code == 1
        assert "dockerd does not accept the configuration, nothing was changed" in rejected.text
        assert json.loads(docker.ssh("node1", f"cat {path}")) == {"no-such-key": 1}
        assert docker.ssh("node1", "docker info --format '{{.DefaultRuntime}}'") == "nvidia\n"
    finally:
        docker.ssh("node1", f"mv /root/kept {path}")


def test_a_lost_gpu_is_found_by_gpuboot_verify(docker: Lab) -> None:
    docker.ssh("node1", "gpu-sim set 1 lost 1")
    try:
        result = docker.command(["gpuboot", "verify", "inventories/lab_docker.py"])
        assert result.code == 1, result.text
        report = json.loads((docker.reports / "latest/verify.json").read_text())
        assert [row["status"] for row in report["gpus"]] == ["pass", "fail"]
    finally:
        docker.ssh("node1", "gpu-sim clear")


def test_docker_itself_calls_them_healthy(docker: Lab) -> None:
    names = "gpuboot-prometheus-1 gpuboot-alertmanager-1"
    look = f"docker inspect --format '{{{{.State.Health.Status}}}}' {names}"
    until(lambda: docker.ssh("node1", look).split() == ["healthy"] * 2, "two healthy containers")
