"""The compose project of Docker hosts, read by the programs that will read it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuboot.config import compose_images as images
from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.docker.compose import compose_prometheus, project
from gpuboot.docker.compose.compose_files import Project
from lab.build import recipe, software_docker
from tests import tools

Reader = Callable[[Path], subprocess.CompletedProcess[str]]

MONITOR = Node("mon1", "mon1", "192.0.2.11", "docker", gpus=0, leader=False, monitor=True)
GPU = Node("gpu1", "gpu1", "192.0.2.21", "docker", gpus=8, leader=False)
MONITOR_WITH_GPU = Node("box1", "box1", "192.0.2.31", "docker", gpus=2, leader=False, monitor=True)
SECRET = "xoxb-nobody-may-read-this"


@pytest.fixture(scope="module")
def check() -> Reader:
    """Docker compose's own reader of compose files."""
    folder = recipe.make(software_docker.check(), {})

    def read(path: Path) -> subprocess.CompletedProcess[str]:
        command = [str(folder / "bin" / "check"), str(path)]
        return subprocess.run(command, capture_output=True, text=True)

    return read


def project_for(node: Node, nodes: tuple[Node, ...] | None = None, **settings: Any) -> Project:
    parsed = parse_settings(settings)
    return project(node, nodes or (MONITOR, GPU), parsed, versions.lock(parsed))


def text(project: Project, path: str) -> str:
    """What gpuboot writes there; empty: made on the host."""
    return next(file.text or "" for file in project.files if file.path == path)


def services(project: Project) -> dict[str, Any]:
    found_services: dict[str, Any] = yaml.safe_load(text(project, "compose.yaml"))["services"]
    return found_services


def laid_out(project: Project, folder: Path) -> None:
    for file in project.files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text or "made on the host")


@pytest.fixture
def receivers(tmp_path: Path) -> dict[str, Any]:
    key = tmp_path / "key"
    key.write_text(f"{SECRET}\n")
    key.chmod(0o600)
    return {"alertmanager": {"pagerduty": {"routing_key": {"file": str(key)}}}}


@pytest.mark.parametrize("node", [MONITOR, GPU, MONITOR_WITH_GPU])
def test_compose_takes_every_hosts_project(check: Reader, tmp_path: Path, node: Node) -> None:
    nodes = (MONITOR_WITH_GPU, GPU) if node is MONITOR_WITH_GPU else (MONITOR, GPU)
    settings = {
        "dcgm": "host",
        "monitoring": {"storage": {"prometheus_size": "45Gi"}},
        "mirrors": {"images": {"*": "https://mirror.example:5000/v2/all"}},
    }
    project = project_for(node, nodes, **settings)
    laid_out(project, tmp_path)
    read = check(tmp_path / "compose.yaml")
    assert read.returncode == 0, read.stderr
    assert set(yaml.safe_load(read.stdout)["services"]) == set(project.services)


@pytest.mark.parametrize(
    ("monitoring", "size"),
    [
        ({}, "43520MB"),  # as in a cluster: 85 % of 50 GiB
        ({"storage": {"prometheus_size": "200Gi"}}, "174080MB"),
        ({"storage": {"persistent": False}}, "43520MB"),  # it is always kept here
    ],
)
def test_prometheus_never_fills_the_disk_of_its_host(monitoring: dict[str, Any], size: str) -> None:
    command = services(project_for(MONITOR, monitoring=monitoring))["prometheus"]["command"]
    assert f"--storage.tsdb.retention.size={size}" in command


def test_the_check_tells_a_wrong_file(check: Reader, tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {a: {image: x, immage: y}}\n")
    read = check(tmp_path / "compose.yaml")
    assert read.returncode == 1
    assert "immage" in read.stderr


def test_a_dollar_of_ours_is_no_variable_of_composes(check: Reader, tmp_path: Path) -> None:
    project = project_for(GPU)
    laid_out(project, tmp_path)
    service = yaml.safe_load(check(tmp_path / "compose.yaml").stdout)["services"]["node-exporter"]
    assert service["command"][-1].endswith("(docker|containerd))($|/)")


def test_prometheus_takes_configuration_rules_and_targets(tmp_path: Path) -> None:
    project = project_for(
        MONITOR_WITH_GPU,
        (MONITOR_WITH_GPU, GPU),
        standalone={"targets": {"vllm": ["10.1.1.1:8000"]}},
    )
    laid_out(project, tmp_path)
    config = tmp_path / "prometheus" / "prometheus.yml"
    config.write_text(config.read_text().replace("/etc/prometheus", str(config.parent)))
    command = [str(tools.promtool()), "check", "config", str(config)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "rules found" in result.stdout


def test_alertmanager_takes_its_configuration(tmp_path: Path, receivers: dict[str, Any]) -> None:
    project = project_for(MONITOR, **receivers)
    laid_out(project, tmp_path)
    config = tmp_path / "alertmanager" / "alertmanager.yml"
    command = [str(tools.amtool()), "check-config", str(config)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "SUCCESS" in result.stdout


def test_alerts_are_loaded_and_sent() -> None:
    config = yaml.safe_load(text(project_for(MONITOR), "prometheus/prometheus.yml"))
    assert config["rule_files"]
    (alertmanager,) = config["alerting"]["alertmanagers"]
    assert alertmanager["static_configs"] == [{"targets": ["127.0.0.1:9093"]}]
    assert config["global"]["external_labels"] == {"cluster": "gpuboot"}


def test_no_password_and_no_secret_is_in_the_compose_file(receivers: dict[str, Any]) -> None:
    project = project_for(MONITOR, grafana_password="correct horse", **receivers)
    for file in project.files:
        holds = SECRET in (file.text or "") or "correct horse" in (file.text or "")
        assert holds == file.path.startswith("secrets/"), file.path
        if file.path.startswith("secrets/"):
            assert file.mode == "600"
            assert file.owner != 0
    assert SECRET not in repr(project)
    grafana = services(project)["grafana"]["environment"]
    assert not {key for key in grafana if key.endswith("PASSWORD")}


def test_grafanas_password_is_made_on_the_host() -> None:
    password = "secrets/grafana/admin-password"
    assert [file.text for file in project_for(MONITOR).files if file.path == password] == [None]


@pytest.mark.parametrize("node", [MONITOR, GPU])
def test_what_containers_may_do(node: Node) -> None:
    for name, service in services(project_for(node)).items():
        assert service["cap_drop"] == ["ALL"]
        assert service.get("cap_add", []) == (["SYS_ADMIN"] if name == "dcgm-exporter" else [])
        assert "privileged" not in service
        assert service.get("read_only", False) == (name != "dcgm-exporter")
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["restart"] == "unless-stopped"
        for volume in service.get("volumes", []):
            assert volume["read_only"] or "/data/" in volume["source"]


def test_images_are_pinned() -> None:
    for service in services(project_for(MONITOR_WITH_GPU, (MONITOR_WITH_GPU,))).values():
        tag = service["image"].rpartition(":")[2]
        assert any(char.isdigit() for char in tag), service["image"]


def test_the_exporter_is_told_what_to_watch() -> None:
    project = project_for(GPU, exporter={"scrape_interval": "2s"}, dcgm="host")
    service = services(project)["dcgm-exporter"]
    assert service["command"] == [
        "-f", "/etc/gpuboot/collectors.csv", "-c", "2000", "-a", "192.0.2.21:9400",
        "-r", "localhost:5555",
    ]  # fmt: skip
    assert service["runtime"] == "nvidia"


def test_hosts_show_their_pages_and_exporters_where_the_settings_say() -> None:
    service_map = services(
        project_for(MONITOR, standalone={"bind": "192.0.2.11", "ports": {"prometheus": 9999}})
    )
    assert "--web.listen-address=192.0.2.11:9999" in service_map["prometheus"]["command"]
    assert "--web.listen-address=192.0.2.11:9100" in service_map["node-exporter"]["command"]


def test_targets_are_the_inventorys_hosts_and_the_sites_own() -> None:
    settings = parse_settings(
        {"standalone": {"targets": {"dcgm-exporter": ["h:1"], "vllm": ["h:2"]}}}
    )
    scrape_targets = compose_prometheus.targets(settings, (MONITOR, GPU))
    assert scrape_targets["dcgm-exporter"] == [
        {"targets": ["192.0.2.21:9400"], "labels": {"node": "gpu1"}},
        {"targets": ["h:1"]},
    ]
    assert [group["labels"]["node"] for group in scrape_targets["node-exporter"]] == [
        "mon1",
        "gpu1",
    ]
    assert scrape_targets["vllm"] == [{"targets": ["h:2"]}]
    assert json.loads(text(project_for(MONITOR), "prometheus/targets/dcgm-exporter/gpuboot.json"))


@pytest.mark.parametrize(
    ("mirror", "expected"),
    [
        ({}, "quay.io/prometheus/prometheus:v3"),
        ({"quay.io": "https://m.example/v2/quay.io"}, "m.example/quay.io/prometheus/prometheus:v3"),
        ({"*": "https://h.example:5000/v2/cache"}, "h.example:5000/cache/prometheus/prometheus:v3"),
        ({"quay.io": "https://h.example/v2"}, "h.example/prometheus/prometheus:v3"),
        ({"nvcr.io": "https://h.example/v2"}, "quay.io/prometheus/prometheus:v3"),
    ],
)
def test_images_come_from_the_mirror_of_their_registry(
    mirror: dict[str, Any], expected: str
) -> None:
    settings = parse_settings({"mirrors": {"images": mirror}})
    assert images.mirrored("quay.io/prometheus/prometheus:v3", settings.mirrors) == expected


def test_the_heartbeat_of_a_cluster_beats_here_too() -> None:
    groups_ = yaml.safe_load(text(project_for(MONITOR), "prometheus/rules/gpuboot.yml"))["groups"]
    alerts = {
        rule["alert"]: rule for group in groups_ for rule in group["rules"] if "alert" in rule
    }
    assert alerts["Watchdog"]["expr"] == "vector(1)"
    assert "TargetDown" in alerts


def test_a_site_chooses_the_ports() -> None:
    ports = {"prometheus": 19090, "alertmanager": 19093, "exporter": 19400,
             "node_exporter": 19100, "grafana": 13000}  # fmt: skip
    project = project_for(MONITOR_WITH_GPU, (MONITOR_WITH_GPU,), standalone={"ports": ports})
    commands = {
        name: " ".join(service.get("command", [])) for name, service in services(project).items()
    }
    assert ":19090" in commands["prometheus"]
    assert ":19093" in commands["alertmanager"]
    assert ":19400" in commands["dcgm-exporter"]
    assert ":19100" in commands["node-exporter"]
    assert "127.0.0.1:19093" in text(project, "prometheus/prometheus.yml")
    for name, port in (("dcgm-exporter", 19400), ("node-exporter", 19100)):
        assert f"192.0.2.31:{port}" in text(project, f"prometheus/targets/{name}/gpuboot.json")
