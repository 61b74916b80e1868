"""What rules and panels say they require is what they read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpuboot.cluster.service_scrape import JOB as SERVICES
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.docker.compose.compose_prometheus import monitoring_rules
from gpuboot.monitoring import rules
from gpuboot.monitoring.dashboards import boards, dashboards
from gpuboot.monitoring.dashboards.spec import Column, Dashboard, Panel, Query
from gpuboot.monitoring.rules import Alert, Record, Requirement
from gpuboot.monitoring.rules.requirements import available_sources
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
    "gpuboot_support": Requirement.TIMER_METRICS,
    "gpuboot_repository": Requirement.TIMER_METRICS,
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
    requirement = Requirement.NONE
    for record in RECORDS:
        if record.name == name:
            requirement |= record.requires
    for prefix, source in SOURCES.items():
        if name.startswith(f"{prefix}_"):
            requirement |= source
    return requirement


def all_read(expr: str) -> Requirement:
    requirement = Requirement.NONE
    for name in metric_names(expr):
        requirement |= reads(name)
    if f'up{{job="{SERVICES}"}}' in expr:  # the one target that is a Service
        requirement |= Requirement.KUBERNETES
    # what Grafana's variables are compared with may be missing: all of them match nothing as well
    if re.search(r'\b(?:pod|namespace)(?:!=""|=~"(?!\$))', expr):
        requirement |= Requirement.POD_LABELS
    return requirement


RULES: list[Alert | Record] = [*RECORDS, *ALERTS]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_requires_what_it_reads(rule: Alert | Record) -> None:
    requirement = all_read(rule.expr)
    welcome = WELCOME.get(rule.name, Requirement.NONE)
    assert welcome in requirement
    assert requirement in rule.requires | welcome
    assert rule.requires in requirement


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
    requirement = all_read(part.expr)
    # kube-state-metrics' own series name pods as well
    of_gpus = Requirement.KUBE_STATE_METRICS not in panel.requires
    if isinstance(part, Column) and part.label in {"namespace", "pod"} and of_gpus:
        requirement |= Requirement.POD_LABELS
    assert requirement in board.requires | panel.requires | part.requires
    full_requirement = requirement
    for expr in panel.expressions:
        full_requirement |= all_read(expr)
    assert part.requires in requirement
    assert panel.requires in full_requirement


def test_no_panel_of_docker_hosts_reads_what_nothing_exports_there() -> None:
    known_metrics = {rule["record"] for rule in loaded() if "record" in rule} | collected(SETTINGS)
    known_metrics |= {"up", "ALERTS", "ALERTS_FOR_STATE"} | NODE_EXPORTER
    for uid, board in dashboards(SETTINGS, rules.ON_DOCKER_HOSTS).items():
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                assert not metric_names(target["expr"]) - known_metrics, (uid, panel["title"])


def loaded(settings: Any = SETTINGS) -> list[dict[str, Any]]:
    """The rules of Docker hosts."""
    groups = [monitoring_rules(), *rules.groups(settings, (GPU_HOST,), rules.ON_DOCKER_HOSTS)]
    return [rule for group in groups for rule in group["rules"]]


def test_no_rule_of_docker_hosts_reads_what_nothing_exports_there() -> None:
    loaded_rules = loaded()
    known_metrics = {rule["record"] for rule in loaded_rules if "record" in rule} | collected(
        SETTINGS
    )
    # Prometheus' own, and Alertmanager's
    known_metrics |= {"up", "prometheus_config_last_reload_successful"} | NODE_EXPORTER
    known_metrics |= {"alertmanager_config_last_reload_successful"}
    known_metrics |= {"alertmanager_notifications_failed_total"}
    for rule in loaded_rules:
        name = rule.get("alert") or rule["record"]
        missing = metric_names(rule["expr"]) - known_metrics
        if name in WELCOME:
            assert missing <= KUBERNETES_ONLY, name
        else:
            assert not missing, name


def test_every_rule_that_can_answer_is_loaded_on_docker_hosts() -> None:
    names = {rule.get("alert") or rule["record"] for rule in loaded()}
    assert {"node:gpu_expected:count", "node:gpu_visible:count", "gpu:engine_active:avg5m"} <= names
    left_out = {rule.name for rule in RULES} - names
    sources = available_sources(rules.ON_DOCKER_HOSTS, SETTINGS)
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
    ("data", "loaded"),
    [
        ({}, {"EtcdBackupOld"}),
        ({"backup": {"enabled": False}}, set()),
        ({"monitoring": {"values": {"nodeExporter": {"enabled": False}}}}, set()),
        ({"backup": {"s3": S3}}, {"EtcdBackupOld", "EtcdBackupCopyOld"}),
        ({"backup": {"s3": S3, "enabled": False}}, set()),
    ],
)
def test_alerts_on_backups_are_loaded_where_there_are_any(
    data: dict[str, Any], loaded: set[str]
) -> None:
    alerts = rules.loaded_alerts(parse_settings(data))
    names = {alert.name for group in alerts.values() for alert in group}
    assert {name for name in names if name.startswith("EtcdBackup")} == loaded


def test_the_age_that_a_site_allows_is_the_threshold_of_both_alerts() -> None:
    alerts = rules.loaded_alerts(parse_settings({"backup": {"s3": S3, "max_age_h": 30}}))
    ages = [a.threshold for group in alerts.values() for a in group if "EtcdBackup" in a.name]
    assert ages == [30, 30]
