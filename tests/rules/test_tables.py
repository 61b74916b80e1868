"""The tables of alerts, records and XIDs agree with each other and with what is collected."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from gpuboot.cluster import backup, backup_copy
from gpuboot.cluster.service_scrape import TARGET
from gpuboot.config import settings
from gpuboot.config.settings.alerting import Severity, XidClass
from gpuboot.docs import runbook_pages
from gpuboot.hosts import dcgm_engine
from gpuboot.monitoring import rules
from gpuboot.monitoring.alerting import inhibitions
from gpuboot.monitoring.rules import xid
from gpuboot.monitoring.rules.alert import Action
from gpuboot.telemetry import FIELDS
from gpuboot.telemetry.expressions import metric_names
from tests.rules.suite import NODES, SETTINGS, all_rules

RUNBOOK_KEYS = ("meaning", "reason", "check", "remedy", "source")
RUNBOOKS = "gpuboot/monitoring/rules/runbooks.toml"
ALERTS = {a.name: a for group in rules.all_alerts(SETTINGS).values() for a in group}
RULES = [rule for group in all_rules().values() for rule in group]
# What kube-state-metrics gives with the allow-lists that we set.
KUBE_STATE_METRICS = {
    "kube_configmap_info", "kube_node_info", "kube_node_labels", "kube_node_status_capacity",
    "kube_node_status_allocatable", "kube_node_status_condition", "kube_node_spec_unschedulable",
    "kube_node_spec_taint", "kube_namespace_labels", "kube_namespace_created", "kube_pod_info",
    "kube_pod_created",
    "kube_pod_owner", "kube_pod_status_phase", "kube_pod_status_unschedulable",
    "kube_pod_container_resource_requests", "kube_pod_init_container_resource_requests",
    "kube_resourcequota",
    "kube_pod_container_status_restarts_total",
    "kube_daemonset_status_desired_number_scheduled", "kube_daemonset_status_number_ready",
}  # fmt: skip
# What kube-prometheus-stack scrapes of a kubeadm cluster without being asked, and the operator's.
OTHER_METRICS = {
    "up",
    "apiserver_client_certificate_expiration_seconds_bucket",
    "apiserver_client_certificate_expiration_seconds_count",
    "kubelet_certificate_manager_client_ttl_seconds",
    "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
    "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
    "etcd_server_has_leader",
    "etcd_mvcc_db_total_size_in_bytes",
    "etcd_server_quota_backend_bytes",
    "etcd_disk_wal_fsync_duration_seconds_bucket",
    "gpu_operator_reconciliation_status",
    # node-exporter's own
    "node_time_seconds",
    "node_boot_time_seconds",
    "node_uname_info",
    # node-exporter's textfile collector
    "gpuboot_etcd_backup_timestamp_seconds",
    "gpuboot_etcd_backup_copy_timestamp_seconds",
    "gpuboot_nvswitch_fatal_timestamp_seconds",
    "gpuboot_dcgm_health",
    "gpuboot_dcgm_health_timestamp_seconds",
    "gpuboot_dcgm_diag",
    "gpuboot_dcgm_diag_timestamp_seconds",
    "gpuboot_support_end_timestamp_seconds",
    "gpuboot_repository_key_end_timestamp_seconds",
}
# Of applications: docs/applications.md's own, vLLM's (vllm/v1/metrics/loggers.py; a counter's
# series is named with `_total`) and Triton's (core, src/metrics.cc). Where nobody exports them, the
# records that read them are empty.
APPLICATIONS = {
    "ml_tokens_total",
    "ml_samples_total",
    "ml_requests_waiting",
    "ml_requests_running",
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_total",
    "vllm:num_requests_waiting",
    "vllm:num_requests_running",
    "nv_inference_count",
    "nv_inference_pending_request_count",
}
COUNTERS = {field.name for field in FIELDS if field.kind == "counter"}


def test_every_metric_is_collected_by_default() -> None:
    known_metrics = (
        {field.name for field in FIELDS if field.default} | KUBE_STATE_METRICS | OTHER_METRICS
    )
    known_metrics |= APPLICATIONS
    known_metrics |= {rule["record"] for rule in RULES if "record" in rule}
    for rule in RULES:
        missing = metric_names(rule["expr"]) - known_metrics
        assert not missing, (
            f"{rule.get('alert', rule.get('record'))} reads {missing}, which nobody collects: give "
            'DCGM\'s fields the tier "gpuboot" in gpuboot/telemetry/fields.py, and name those of '
            "other exporters at the top of this file"
        )


def test_only_counters_are_asked_for_their_rise() -> None:
    """`rate` of a gauge, or of the exporter's windowed `_COUNT`s, gives numbers without meaning."""
    for rule in RULES:
        for name in re.findall(r"(?:rate|increase)\((\w+)[\[{]", rule["expr"]):
            is_counter = name in COUNTERS or name.endswith(("_total", "_bucket", "_count"))
            assert is_counter, f"rate of {name}"


def test_names_that_exist_once() -> None:
    names = [a.name for group in rules.all_alerts(SETTINGS).values() for a in group]
    assert len(names) == len(set(names))
    groups = [group["name"] for group in rules.groups(SETTINGS, NODES)]
    assert len(groups) == len(set(groups))
    assert all(name.startswith("gpuboot-") for name in groups)


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_is_complete(name: str) -> None:
    alert, text = ALERTS[name], runbook_pages.texts().get(name, {})
    missing = [key for key in RUNBOOK_KEYS if not text.get(key)]
    assert not missing, f"[{name}] of {RUNBOOKS} lacks {', '.join(missing)}"
    assert alert.severity in get_args(Severity)
    assert runbook_pages.actions(alert), alert.action
    assert set(runbook_pages.actions(alert)) <= set(get_args(Action))
    assert ("{threshold}" in alert.expr) == (alert.threshold is not None) == ("unit" in text), (
        f"{name} needs all of these or none: {{threshold}} in its expr, its threshold, and unit "
        f"in {RUNBOOKS}"
    )
    assert len(re.sub(r"\{\{.*?\}\}", "", alert.summary)) < 120, "shorten its summary"
    page = runbook_pages.page(alert)
    assert page.startswith(f"# {name}\n")
    assert rules.expression(alert) in page


def test_every_text_is_of_an_alert() -> None:
    """And a step that is only a name is one of the named."""
    unused = runbook_pages.texts().keys() - ALERTS.keys()
    assert not unused, f"{RUNBOOKS} tells of {unused}, which no alert is named: remove or rename it"
    for text in runbook_pages.texts().values():
        steps = (*text["check"], *text["remedy"])
        unknown = [step for step in steps if re.fullmatch("[A-Z_]+", step)]
        assert not unknown, f"{unknown}: write the step, or add it to [steps] of {RUNBOOKS}"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("EtcdBackupOld", (backup.METRICS_FOLDER, backup.PROGRAM, backup.TIMER, backup.SERVICE)),
        ("DCGMHealthFail", (f"{dcgm_engine.RESULTS}/health.json", dcgm_engine.PROGRAM)),
        ("DCGMCheckStale", (f"{dcgm_engine.DIAG_STALE_H} hours", dcgm_engine.PROGRAM)),
        ("EtcdBackupCopyOld", (backup_copy.SERVICE,)),
        ("ClusterServicesUnreachable", (TARGET,)),
    ],
)
def test_runbooks_name_what_hosts_have(name: str, words: tuple[str, ...]) -> None:
    page = runbook_pages.page(ALERTS[name])
    assert [word for word in words if word not in page] == []


def test_a_critical_alert_never_comes_from_heat_programs_or_a_missing_exporter_alone() -> None:
    """Nobody is to be woken for what nobody can repair at night."""
    for name in ("GPUThermalThrottle", "GPUXidApplication", "GPUAllocatedIdle", "GPUExporterDown"):
        assert ALERTS[name].severity != "critical"


def test_every_inhibition_names_alerts_that_exist() -> None:
    known_alerts = ALERTS.keys() | {"InfoInhibitor", "Watchdog"}
    for rule in inhibitions.rules():
        for matcher in [*rule.get("source_matchers", []), *rule["target_matchers"]]:
            match = re.fullmatch(r'alertname (=|=~|!=|!~) "(.*)"', matcher)
            for name in match[2].split("|") if match else ():
                assert name.startswith("Kube") or any(
                    re.fullmatch(name, alert) for alert in known_alerts
                )


def test_a_repair_that_is_stuck_is_not_muted_by_the_repair() -> None:
    (muting,) = (
        rule for rule in inhibitions.rules()
        if 'alertname = "GPUNodeUnderRepair"' in rule.get("source_matchers", [])
    )  # fmt: skip
    text = " ".join(muting["target_matchers"])
    assert "GPURepairStuck" in text


# The codes that facts from NVIDIA's catalog call for help, as the validated rule had them; without
# 144 to 149, whose sub-code decides.
FATAL = (46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 150, 155, 156, 158)
# NVIDIA's sheet "XID 144-150 Decode", as gpud's catalog_generated.go of 2025-10-29 has it: XID ->
# sub-codes, and how many of them are to be ignored
NVLINK_5 = {144: (6, 4), 145: (33, 16), 146: (20, 15), 147: (2, 2), 148: (1, 1), 149: (31, 7)}


def test_xid_classes_are_disjoint_and_complete() -> None:
    by_class = {kind: set(xid.codes(kind, {})) for kind in xid.CLASSES}
    assert sum(map(len, by_class.values())) == len(xid.table())
    assert set().union(*(by_class[kind] for kind in xid.FATAL)) == set(FATAL)
    assert xid.REMEDIES.keys() == set(xid.CLASSES)
    assert {94, 31, 13} <= by_class["application"]
    assert 63 in by_class["information"]
    assert {45, 154, 159, 171, 172} == by_class["context"]
    assert {162} == by_class["information"] & set(range(162, 177))
    assert {*range(163, 171), 173, 175, 176} == by_class["inspect"] & set(range(162, 177))


def test_nvlink_5_is_for_a_person_since_its_sub_code_stands_in_the_kernel_log_only() -> None:
    assert [sum(column) for column in zip(*NVLINK_5.values(), strict=True)] == [93, 45]
    for code, (all_, ignored) in NVLINK_5.items():
        entry = xid.table()[code]
        assert entry.kind == "inspect"
        assert f"nothing in {ignored} case" in entry.note
        assert entry.note.endswith(f"of {all_}.")


def test_an_override_moves_a_code_and_nothing_else() -> None:
    over: dict[int, XidClass] = {94: "reset", 200: "nvlink"}
    before, after = xid.classes({}), xid.classes(over)
    assert after == before | over
    changed = settings.parse_settings({"alerts": {"xid": over}})
    loaded = {alert.name: alert for alert in rules.loaded_alerts(changed)["xid"]}
    fatal, application = loaded["GPUXidFatal"], loaded["GPUXidApplication"]
    assert re.search(r"\b94\b.*\b200\b", fatal.expr)
    assert not re.search(r"\b94\b", application.expr)


def test_a_class_that_overrides_leave_empty_matches_nothing() -> None:
    over: dict[int, XidClass] = dict.fromkeys(xid.codes("inspect", {}), "application")
    pattern = xid.regex(("inspect",), over)
    assert pattern
    assert not any(re.fullmatch(pattern, str(code)) for code in range(1000))


def test_every_xid_is_seen_by_some_alert_or_is_harmless() -> None:
    """Whatever code the driver invents next: with no class it is for a person to judge."""
    inspect = next(a for a in rules.loaded_alerts(SETTINGS)["xid"] if a.name == "GPUXidInspect")
    (pattern,) = re.findall(r'xid!~"([^"]*)"', inspect.expr)
    assert not any(re.fullmatch(pattern, str(code)) for code in range(177, 400))
    assert all(re.fullmatch(pattern, str(code)) for code in xid.table())
