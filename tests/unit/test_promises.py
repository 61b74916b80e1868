"""What docs/ promises in a sentence, compared with what is made: the sentence and the thing."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
import yaml

from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.config.settings.cluster import Cluster
from gpuboot.docker.compose import project
from gpuboot.monitoring import dashboards
from gpuboot.monitoring.charts.exporter import exporter_values
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.monitoring.charts.monitoring_values import monitoring_values
from gpuboot.monitoring.charts.stack_volumes import USABLE_SHARE
from gpuboot.monitoring.dashboards.alert_panels import REPAIR
from gpuboot.monitoring.network_policies import policies
from gpuboot.monitoring.rules.alert import Action
from gpuboot.monitoring.rules.catalogue import all_alerts
from gpuboot.preflight import ports as preflight_ports
from gpuboot.preflight.connectivity import endpoints
from gpuboot.preflight.docker_problems import ports
from gpuboot.preflight.preflight_checks import Subject, _gpus
from gpuboot.verify.checks import host_checks
from gpuboot.verify.findings import LINKS
from gpuboot.verify.report import build
from tests.documents import ROOT
from tests.unit.test_preflight import CLEAN, H100, WORKER, gpu

MONITOR = Node("box1", "box1", "192.0.2.31", "docker", gpus=2, leader=False, monitor=True)
CONTROL = Node("cp1", "cp1", "192.0.2.11", "control_plane", gpus=0, leader=True)
LOCAL = "127.0.0.1"


def assert_page_states(page: str, sentence: str) -> None:
    """The page still has the sentence; who changes it looks here."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert sentence in text, f"{page} no longer says: {sentence}"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    settings = parse_settings({})
    compose_project = project(MONITOR, (MONITOR,), settings, versions.lock(settings))
    text = next(file.text for file in compose_project.files if file.path == "compose.yaml")
    compose_services: dict[str, Any] = yaml.safe_load(text or "")["services"]
    return compose_services


def test_docker_hosts_use_the_host_s_network(services: dict[str, Any]) -> None:
    assert_page_states("docs/standalone.md", "All containers are in the host's network, on purpose")
    assert {item["network_mode"] for item in services.values()} == {"host"}
    assert not any("ports" in item for item in services.values())


@pytest.mark.parametrize(("dcgm", "host"), [("embedded", False), ("host", True)])
def test_exporters_of_a_cluster_have_a_network_of_their_own(dcgm: str, host: bool) -> None:
    assert_page_states("docs/metrics.md", '| host network | none, unless `dcgm` is `"host"`')
    settings = parse_settings({"dcgm": dcgm})
    lock = versions.lock(settings)
    assert exporter_values(settings, lock)["hostNetwork"] is host
    assert operator_values(settings, lock)["dcgmExporter"].get("hostNetwork", False) is host


def test_docker_hosts_give_no_capabilities(services: dict[str, Any]) -> None:
    assert_page_states(
        "docs/standalone.md",
        "Every container drops all capabilities and gains none; dcgm-exporter alone has "
        "`SYS_ADMIN`, which profiling fields take. The others' file systems are read-only.",
    )
    for name, item in services.items():
        has_capability = name == "dcgm-exporter"
        assert item["cap_drop"] == ["ALL"]
        assert item.get("cap_add", []) == (["SYS_ADMIN"] if has_capability else [])
        assert item.get("read_only", False) is not has_capability
        assert item["security_opt"] == ["no-new-privileges:true"]


def test_docker_hosts_show_pages_to_themselves_only(services: dict[str, Any]) -> None:
    assert_page_states(
        "docs/standalone.md", "The pages are shown on 127.0.0.1 unless `standalone.bind`"
    )
    assert_page_states(
        "docs/standalone.md", "Let only the monitoring host reach 9400 and 9100 of the others"
    )
    assert parse_settings({}).standalone.bind == LOCAL
    addresses = " ".join(str(item) for item in services.values())
    for port, use in ports(MONITOR, parse_settings({})).items():
        address = MONITOR.address if use in {"dcgm-exporter", "node-exporter"} else LOCAL
        assert (
            f"{address}:{port}" in addresses or f"'GF_SERVER_HTTP_ADDR': '{address}'" in addresses
        )
    assert {9400, 9100} <= set(ports(MONITOR, parse_settings({})))


def test_docker_hosts_keep_as_much_as_a_cluster(services: dict[str, Any]) -> None:
    assert_page_states("docs/standalone.md", "as in a cluster, 85 % of it are used")
    size = monitoring_values(parse_settings({}))["prometheus"]["prometheusSpec"]["retentionSize"]
    assert f"--storage.tsdb.retention.size={size}" in services["prometheus"]["command"]


def test_docker_hosts_have_their_dashboards_in_the_folder() -> None:
    assert_page_states("docs/dashboards.md", "folder *GPU*")
    settings = parse_settings({})
    compose_project = project(MONITOR, (MONITOR,), settings, versions.lock(settings))
    file = next(
        item for item in compose_project.files if item.path.endswith("dashboards/gpuboot.yaml")
    )
    assert yaml.safe_load(file.text or "")["providers"][0]["folder"] == dashboards.FOLDER == "GPU"


def test_clusters_have_their_dashboards_in_the_folder() -> None:
    """The chart's Grafana takes folders from files only where both are told (its sidecar)."""
    assert_page_states("docs/dashboards.md", "folder *GPU*")
    sidecar = monitoring_values(parse_settings({}))["grafana"]["sidecar"]["dashboards"]
    assert sidecar["provider"]["foldersFromFilesStructure"] is True
    marks = {
        tuple(item["metadata"]["annotations"].items())
        for item in dashboards.config_maps(parse_settings({}))
    }
    assert marks == {((sidecar["folderAnnotation"], "GPU"),)}


def test_what_is_kept_by_default() -> None:
    monitoring = parse_settings({}).monitoring
    storage = monitoring.storage
    for name, value in (
        ("`monitoring.retention`", f"{monitoring.retention.removesuffix('d')} days"),
        ("`monitoring.storage.prometheus_size`", storage.prometheus_size.replace("G", " G")),
        ("`…alertmanager_size`", storage.alertmanager_size.replace("G", " G")),
        ("`…grafana_size`", storage.grafana_size.replace("G", " G")),
    ):
        assert_page_states("docs/storage.md", f"{name} | {value}")
    assert_page_states("docs/storage.md", f"{USABLE_SHARE:.0%}".replace("%", " % of it"))


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    text = (ROOT / page).read_text(encoding="utf-8").split(f"## {heading}\n")[1]
    lines = re.search(r"^\|.*?(?=^[^|]|\Z)", text, re.MULTILINE | re.DOTALL)
    assert lines
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[0].splitlines()]
    return [row for row in rows[2:] if row]


def test_firewalls_are_told_every_port_of_the_cluster() -> None:
    rows = table("docs/servers.md", "Firewalls between the nodes")
    documented = {
        (int(port), role)
        for ports, role, *_ in rows
        for port in re.findall(r"(\d+)/(?:tcp|udp)", ports)
    }
    kubernetes = {(port, "every node") for port in preflight_ports._EVERY_NODE}
    kubernetes |= {(port, "control plane") for port in preflight_ports._CONTROL_PLANE}
    targets = monitoring_values(parse_settings({"monitoring": {"control_plane_targets": True}}))
    metrics = {
        (targets[name]["service"]["targetPort"], role)
        for name, role in (
            ("kubeControllerManager", "control plane"),
            ("kubeScheduler", "control plane"),
            ("kubeEtcd", "control plane"),
            ("kubeProxy", "every node"),
        )
    }
    # flannel's: Documentation/backends.md at v0.28 (VXLAN: Port 8472; WireGuard: 51820, 51821);
    # node-exporter's: the chart's default
    other_ports = {
        (22, "every node"),
        *((port, "every node") for port in (8472, 51820, 51821, 9100)),
    }
    assert documented == kubernetes | metrics | other_ports
    backends = get_args(Cluster.model_fields["flannel_backend"].annotation)
    assert all(f'"{name}"' in str(rows) for name in backends)


def test_firewalls_are_told_every_site() -> None:
    rows = table("docs/servers.md", "Sites that the servers reach")
    documented = {site.strip() for row in rows for site in row[0].split(",")}
    with_gpus = Node("cp1", "cp1", "192.0.2.11", "control_plane", gpus=8, leader=True)
    logs = {"enabled": True, "loki": {"url": "https://loki.example.org"}}
    settings = parse_settings({"logs": logs})
    contacted = {address.rpartition(":")[0] for address in endpoints(settings, with_gpus)}
    assert documented == contacted
    assert all(address.endswith(":443") for address in endpoints(parse_settings({}), with_gpus))


def test_every_setting_that_the_page_of_servers_names_exists() -> None:
    text = (ROOT / "docs/servers.md").read_text()
    for name in re.findall(r"`((?:cluster|driver|monitoring|mirrors|proxy)\.\w+)", text):
        section, key = name.split(".")
        assert hasattr(getattr(parse_settings({}), section), key), name


def test_what_preflight_refuses_is_said_beforehand() -> None:
    """Each remark of the page about a server is one that preflight makes, or an operation."""
    assert_page_states(
        "docs/servers.md", "refused; `nvidia-uninstall --silent` and a reboot remove it"
    )
    assert_page_states(
        "docs/servers.md", "`gpus` has to equal what the PCI bus shows, neither more nor fewer"
    )
    folder = ROOT / "gpuboot/preflight"
    source = "".join(path.read_text() for path in sorted(folder.glob("**/*.py")))
    for remedy in ("nvidia-uninstall --silent", "mokutil --import"):
        assert remedy in source
    seven = replace(CLEAN, pci=tuple(gpu(H100, slot) for slot in range(7)))
    for gpu_count, expected in ((8, "the PCI bus shows 7"), (6, "the PCI bus shows 7 GPUs")):
        ((cause, _),) = _gpus(
            cast(Subject, SimpleNamespace(node=replace(WORKER, gpus=gpu_count), state=seven))
        )
        assert expected in cause


def test_who_may_ask_whom_under_network_policies() -> None:
    """The table of docs/access.md has every port that a policy opens, and no other."""
    text = (ROOT / "docs/access.md").read_text().split("## NetworkPolicies")[1].split("\n## ")[0]
    documented_ports = {
        int(port) for port in re.findall(r"^\| [\w-]+ (\d+) \|", text, re.MULTILINE)
    }
    settings = parse_settings({"monitoring": {"network_policies": True}})
    opened = {
        port["port"]
        for policy in policies(settings, [CONTROL])
        for rule in policy["spec"]["ingress"]
        for port in rule["ports"]
    }
    reloader = 8080  # Prometheus reads its neighbours' metrics there; nobody asks for it
    assert opened - {reloader} == documented_ports


def test_the_readme_names_every_action() -> None:
    text = (ROOT / "README.md").read_text().split("`gpu_action` is")[1].split(".")[0]
    assert set(re.findall(r"`(\w+)`", text)) == set(get_args(Action))
    assert set(REPAIR) < set(get_args(Action))


def test_the_readme_counts_rightly() -> None:
    assert_page_states("README.md", "**Some sixty alerts**")
    assert 45 <= sum(len(group) for group in all_alerts(parse_settings({})).values()) <= 75
    assert_page_states("README.md", "**Six dashboards**")
    assert len(dashboards.dashboards(parse_settings({}))) == 6


def test_the_page_of_reports_explains_every_link_and_key() -> None:
    text = (ROOT / "docs/reports.md").read_text()
    assert [link for link in LINKS.keys() - host_checks.NAMES if f"`{link}`" not in text] == []
    document = build("c", "", 0, (), (), {}).to_json()
    assert [key for key in document if f"`{key}`" not in text and f"`{key}[]`" not in text] == []


def test_pages_are_not_open_by_default() -> None:
    assert_page_states(
        "docs/access.md", "Nothing is open to the network unless the settings say so."
    )
    chart_values = monitoring_values(parse_settings({}))
    for name in ("prometheus", "alertmanager", "grafana"):
        assert "nodePort" not in str(chart_values[name].get("service", {}))
        assert not chart_values[name].get("ingress", {}).get("enabled")
