"""What rules and panels say they require is what they read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpuboot import rules
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.dashboards import boards, dashboards
from gpuboot.dashboards.spec import Column, Dashboard, Panel, Query
from gpuboot.docker.compose.prometheus import monitoring_rules
from gpuboot.kubernetes.service_scrape import JOB as SERVICES
from gpuboot.rules import Alert, Record, Requirement
from gpuboot.rules.requirements import offered
from gpuboot.telemetry import collected
from gpuboot.telemetry.expressions import metric_names

SETTINGS = parse_settings(
    {"alerts": {"gpu_memory_near_full": ["training"]}, "cost": {"gpu_hour": {"*": 2}}}
)
S3 = {"bucket": "etcd", "access_key": "AKIA", "secret_key": {"file": "secret"}}
NODE_EXPORTER = {
    *("node_uname_info", "node_cpu_seconds_total", "node_time_seconds", "node_boot_time_seconds"),
    *("node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"),
    "gpuboot_nvswitch_fatal_timestamp_seconds",  # left for it by a timer
}
KUBERNETES_ONLY = {
    *("kube_node_info", "kube_pod_info", "kube_pod_container_status_restarts_total"),
    "node:gpu_allocatable:sum",
}
GPU_HOST = Node("gpu1", "gpu1", "192.0.2.21", "docker", gpus=8, leader=False)
RECORDS = [record for group in rules.recordings(SETTINGS, (GPU_HOST,)).values() for record in group]
ALERTS = [alert for group in rules.all_alerts(SETTINGS).values() for alert in group]
# first part of a metric's name -> what it comes from
SOURCES = {
    "kube": Requirement.KUBE_STATE_METRICS,
    "apiserver": Requirement.KUBERNETES,
    "kubelet": Requirement.KUBERNETES,
    "etcd": Requirement.CONTROL_PLANE_TARGETS,
    "kubeproxy": Requirement.CONTROL_PLANE_TARGETS,
    "gpuboot_etcd_backup": Requirement.ETCD_BACKUPS,
    "gpuboot_dcgm": Requirement.DCGM_ON_HOSTS,
    "gpu_operator": Requirement.GPU_OPERATOR,
    "node_time": Requirement.NODE_EXPORTER,
    "node_boot": Requirement.NODE_EXPORTER,
    "gpuboot_nvswitch": Requirement.NVSWITCH_ERRORS,
}
# rule -> what it reads as well, and does without
WELCOME = {
    # before an exporter was first seen, and while it is down, the kubelet is asked
    "GPULost": Requirement.KUBE_STATE_METRICS,
    # a node that the inventory does not have may still be in the cluster
    "node:present:info": Requirement.KUBE_STATE_METRICS,
    # a boot is one of several signs of a repair
    "gpu:repaired:timestamp": Requirement.NODE_EXPORTER,
    # nodes that are not in the cluster yet need no exporter; without a cluster all do
    "GPUExporterAbsent": Requirement.KUBE_STATE_METRICS,
    # restarts too short for a scrape to miss; it names the exporter's own pods
    "GPUExporterUnstable": Requirement.KUBE_STATE_METRICS | Requirement.POD_LABELS,
    # ages go by the node's own clock where it tells its time
    "DCGMCheckStale": Requirement.NODE_EXPORTER,
    "NVSwitchFatalError": Requirement.NODE_EXPORTER,
    "EtcdBackupOld": Requirement.NODE_EXPORTER,
    "EtcdBackupCopyOld": Requirement.NODE_EXPORTER,
    # GPUs that no pod holds have programs as well
    "GPUXidApplication": Requirement.POD_LABELS,
    # pods younger than the window are left out
    "gpu:engine_active:max1h": Requirement.KUBE_STATE_METRICS,
}


def reads(name: str) -> Requirement:
    """What a metric comes from, in the end."""
    found = Requirement.NOTHING
    for record in RECORDS:
        if record.name == name:
            found |= record.requires
    for prefix, source in SOURCES.items():
        if name.startswith(f"{prefix}_"):
            found |= source
    return found


def all_read(expr: str) -> Requirement:
    found = Requirement.NOTHING
    for name in metric_names(expr):
        found |= reads(name)
    if f'up{{job="{SERVICES}"}}' in expr:  # the one target that is a Service
        found |= Requirement.KUBERNETES
    # what Grafana's variables are compared with may be missing: all of them match nothing as well
    if re.search(r'\b(?:pod|namespace)(?:!=""|=~"(?!\$))', expr):
        found |= Requirement.POD_LABELS
    return found


RULES: list[Alert | Record] = [*RECORDS, *ALERTS]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_requires_what_it_reads(rule: Alert | Record) -> None:
    found = all_read(rule.expr)
    welcome = WELCOME.get(rule.name, Requirement.NOTHING)
    assert welcome in found
    assert found in rule.requires | welcome
    assert rule.requires in found


PARTS = [
    (board, panel, part)
    for board in boards(SETTINGS)
    for panel in board.panels
    for part in (*panel.queries, *panel.columns)
]


@pytest.mark.parametrize(("board", "panel", "part"), PARTS)
def test_a_panel_requires_what_it_reads(
    board: Dashboard, panel: Panel, part: Query | Column
) -> None:
    found = all_read(part.expr)
    # kube-state-metrics' own series name pods as well
    of_gpus = Requirement.KUBE_STATE_METRICS not in panel.requires
    if isinstance(part, Column) and part.label in {"namespace", "pod"} and of_gpus:
        found |= Requirement.POD_LABELS
    assert found in board.requires | panel.requires | part.requires
    whole = found
    for expr in panel.expressions:
        whole |= all_read(expr)
    assert part.requires in found
    assert panel.requires in whole


def test_no_panel_of_docker_hosts_reads_what_nothing_exports_there() -> None:
    known = {rule["record"] for rule in loaded() if "record" in rule} | collected(SETTINGS)
    known |= {"up", "ALERTS", "ALERTS_FOR_STATE"} | NODE_EXPORTER
    for uid, board in dashboards(SETTINGS, rules.ON_DOCKER_HOSTS).items():
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                assert not metric_names(target["expr"]) - known, (uid, panel["title"])


def loaded(settings: Any = SETTINGS) -> list[dict[str, Any]]:
    """The rules of Docker hosts."""
    groups = [monitoring_rules(), *rules.groups(settings, (GPU_HOST,), rules.ON_DOCKER_HOSTS)]
    return [rule for group in groups for rule in group["rules"]]


def test_no_rule_of_docker_hosts_reads_what_nothing_exports_there() -> None:
    found = loaded()
    known = {rule["record"] for rule in found if "record" in rule} | collected(SETTINGS)
    # Prometheus' own, and Alertmanager's
    known |= {"up", "prometheus_config_last_reload_successful"} | NODE_EXPORTER
    known |= {"alertmanager_config_last_reload_successful"}
    known |= {"alertmanager_notifications_failed_total"}
    for rule in found:
        name = rule.get("alert") or rule["record"]
        missing = metric_names(rule["expr"]) - known
        if name in WELCOME:
            assert missing <= KUBERNETES_ONLY, name
        else:
            assert not missing, name


def test_every_rule_that_can_answer_is_loaded_on_docker_hosts() -> None:
    names = {rule.get("alert") or rule["record"] for rule in loaded()}
    assert {"node:gpu_expected:count", "node:gpu_visible:count", "gpu:engine_active:avg5m"} <= names
    left_out = {rule.name for rule in RULES} - names
    sources = offered(rules.ON_DOCKER_HOSTS, SETTINGS)
    assert left_out == {rule.name for rule in RULES if rule.requires not in sources}
    about_gpus = {a.name for a in ALERTS if a.component == "gpu" and not a.requires}
    assert {"GPULost", "GPUXidFatal", "GPUHealthFail", "GPUPcieReplay"} <= about_gpus <= names
    assert {"GPUExporterDown", "GPUExporterAbsent"} <= names


def test_control_plane_targets_that_are_off_take_their_alerts_along() -> None:
    def alerts(targets: bool) -> set[str]:
        settings = parse_settings({"monitoring": {"control_plane_targets": targets}})
        return {alert.name for group in rules.loaded_alerts(settings).values() for alert in group}

    needing = {a.name for a in ALERTS if Requirement.CONTROL_PLANE_TARGETS in a.requires}
    assert "EtcdNotMonitored" in needing
    assert alerts(True) - alerts(False) == needing


@pytest.mark.parametrize(
    ("given", "loaded"),
    [
        ({}, {"EtcdBackupOld"}),
        ({"backup": {"enabled": False}}, set()),
        ({"monitoring": {"values": {"nodeExporter": {"enabled": False}}}}, set()),
        ({"backup": {"s3": S3}}, {"EtcdBackupOld", "EtcdBackupCopyOld"}),
        ({"backup": {"s3": S3, "enabled": False}}, set()),
    ],
)
def test_alerts_on_backups_are_loaded_where_there_are_any(
    given: dict[str, Any], loaded: set[str]
) -> None:
    found = rules.loaded_alerts(parse_settings(given))
    names = {alert.name for group in found.values() for alert in group}
    assert {name for name in names if name.startswith("EtcdBackup")} == loaded


def test_the_age_that_a_site_allows_is_the_threshold_of_both_alerts() -> None:
    found = rules.loaded_alerts(parse_settings({"backup": {"s3": S3, "max_age_h": 30}}))
    ages = [a.threshold for group in found.values() for a in group if "EtcdBackup" in a.name]
    assert ages == [30, 30]
