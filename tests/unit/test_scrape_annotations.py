"""Scraping by annotation: what the scrape configurations take, evaluated as Prometheus does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.charts.scrape_annotations import scrape_configs
from tests.tools import promtool

SETTINGS = parse_settings({"monitoring": {"scrape_annotations": True}})
META = "__meta_kubernetes_"


def relabelled(config: dict[str, Any], target: dict[str, str]) -> dict[str, str] | None:
    """A target's labels after relabelling; None: dropped. The actions that are in use."""
    labels = {"__scheme__": "http", "__metrics_path__": "/metrics", **target}
    for rule in config["relabel_configs"]:
        value = ";".join(labels.get(name, "") for name in rule["source_labels"])
        action = rule.get("action", "replace")
        match = re.fullmatch(rule.get("regex", "(.*)"), value, re.DOTALL)
        if (action == "keep" and not match) or (action == "drop" and match):
            return None
        if action == "replace" and match:
            template = re.sub(r"\$(\d)", r"\\\1", rule.get("replacement", "$1"))
            labels[rule["target_label"]] = match.expand(template)
    return {name: value for name, value in labels.items() if value and META not in name}


def pod(**labels: str) -> dict[str, str] | None:
    target_labels = {
        "namespace": "team-a",
        "pod_name": "web-0",
        "pod_ip": "10.244.1.5",
        "pod_phase": "Running",
        "pod_node_name": "gpu1",
        "pod_container_port_number": "8080",
        "pod_annotation_prometheus_io_scrape": "true",
        **labels,
    }
    port = target_labels["pod_container_port_number"]
    address = (
        f"[{target_labels['pod_ip']}]:{port}"
        if ":" in target_labels["pod_ip"]
        else target_labels["pod_ip"]
    )
    address = address if ":" in target_labels["pod_ip"] or not port else f"{address}:{port}"
    target = {META + name: value for name, value in target_labels.items() if value}
    return relabelled(scrape_configs(SETTINGS)[0], {"__address__": address, **target})


def service(**labels: str) -> dict[str, str] | None:
    target_labels = {
        "namespace": "team-a",
        "service_name": "web",
        "pod_name": "web-0",
        "pod_ip": "10.244.1.5",
        "pod_node_name": "gpu1",
        "endpointslice_endpoint_conditions_ready": "true",
        "service_annotation_prometheus_io_scrape": "true",
        **labels,
    }
    target = {META + name: value for name, value in target_labels.items() if value}
    return relabelled(
        scrape_configs(SETTINGS)[1], {"__address__": f"{target_labels['pod_ip']}:8080", **target}
    )


def test_prometheus_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "prometheus.yml"
    path.write_text(yaml.safe_dump({"scrape_configs": scrape_configs(SETTINGS)}))
    command = [str(promtool()), "check", "config", "--syntax-only", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if "field kubernetes_sd_configs not found" in result.stdout + result.stderr:
        pytest.skip("Debian's promtool is built without Kubernetes: scripts/lab builds one with it")
    assert result.returncode == 0, result.stdout + result.stderr


def test_it_is_an_option() -> None:
    assert scrape_configs(parse_settings({})) == []


def test_a_pod_is_read_where_its_container_listens() -> None:
    assert pod() == {
        "__address__": "10.244.1.5:8080",
        "__scheme__": "http",
        "__metrics_path__": "/metrics",
        "namespace": "team-a",
        "pod": "web-0",
        "node": "gpu1",
    }


@pytest.mark.parametrize(
    ("annotation", "value", "label", "expected"),
    [
        ("port", "9000", "__address__", "10.244.1.5:9000"),
        ("path", "/stats", "__metrics_path__", "/stats"),
        ("scheme", "https", "__scheme__", "https"),
        ("scheme", "gopher", "__scheme__", "http"),
    ],
)
def test_annotations_are_honoured(annotation: str, value: str, label: str, expected: str) -> None:
    labels = pod(**{f"pod_annotation_prometheus_io_{annotation}": value})
    assert labels is not None
    assert labels[label] == expected
    labels = service(**{f"service_annotation_prometheus_io_{annotation}": value})
    assert labels is not None
    assert labels[label] == expected


def test_ipv6_addresses_get_brackets() -> None:
    labels = pod(pod_ip="fd00::5", pod_annotation_prometheus_io_port="9000")
    assert labels is not None
    assert labels["__address__"] == "[fd00::5]:9000"


def test_two_containers_of_one_pod_make_one_target() -> None:
    port = {"pod_annotation_prometheus_io_port": "9000"}
    assert pod(pod_container_port_number="1", **port) == pod(pod_container_port_number="2", **port)


@pytest.mark.parametrize(
    "labels",
    [
        {"pod_annotation_prometheus_io_scrape": ""},
        {"pod_annotation_prometheus_io_scrape": "false"},
        {"pod_phase": "Succeeded"},
        {"pod_phase": "Pending"},
        {"pod_container_init": "true"},
        {"pod_container_port_number": ""},
        {"namespace": "monitoring"},
        {"namespace": "gpu-operator"},
        {"namespace": "dcgm-exporter"},
    ],
)
def test_pods_that_are_left_out(labels: dict[str, str]) -> None:
    assert pod(**labels) is None


@pytest.mark.parametrize(
    "labels",
    [
        {"namespace": "gpu-operator", "service_name": "nvidia-dcgm-exporter"},
        {"namespace": "kube-system", "service_label_k8s_app": "kube-dns"},
        {"pod_annotation_prometheus_io_scrape": "true"},  # read by the job of the pods
        {"endpointslice_endpoint_conditions_ready": "false"},
        {"service_annotation_prometheus_io_scrape": ""},
    ],
)
def test_services_that_are_left_out(labels: dict[str, str]) -> None:
    assert service(**labels) is None


def test_a_service_names_itself() -> None:
    labels = service()
    assert labels is not None
    assert (labels["service"], labels["pod"], labels["node"]) == ("web", "web-0", "gpu1")
