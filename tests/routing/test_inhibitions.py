"""Which alert keeps which other one quiet, with a real Alertmanager. (amtool cannot tell.)"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pytest

from lab.alert_receivers import show
from tests.routing import running
from tests.routing.running import GROUP_INTERVAL_S, Site

Labels = dict[str, str]

CRITICAL, WARNING, INFO, NONE = "critical", "warning", "info", "none"


def gpu_labels(**labels: str) -> Labels:
    """Labels of an alert of ours, which always has these two."""
    return {"component": "gpu", "gpu_action": "none", **labels}


GPU_A, GPU_B = gpu_labels(node="gpu1", UUID="GPU-A"), gpu_labels(node="gpu2", UUID="GPU-B")
ON_GPU1, ON_GPU2 = gpu_labels(node="gpu1"), gpu_labels(node="gpu2")
IN_ML, ML, OPS = gpu_labels(namespace="ml"), {"namespace": "ml"}, {"namespace": "ops"}
PLAIN = {"node": "gpu1"}  # somebody else's alert about the same node

# what fires, what it keeps quiet, what it must not keep quiet: each (name, severity, labels)
Alert = tuple[str, str, Labels]
RULES: dict[str, tuple[Alert, list[Alert], list[Alert]]] = {
    "under repair": (
        ("GPUNodeUnderRepair", INFO, ON_GPU1),
        [("GPUHealthWarn", WARNING, GPU_A), ("GPUNodeCordonedLong", WARNING, ON_GPU1)],
        [
            ("GPULost", CRITICAL, ON_GPU1),
            ("GPURepairStuck", WARNING, ON_GPU1),
            ("GPUMemoryHot", WARNING, GPU_B),
            ("GPUPodPending", WARNING, IN_ML),
            ("NodeClockSkew", WARNING, PLAIN),
        ],
    ),
    "not ready": (
        ("GPUNodeNotReady", CRITICAL, ON_GPU1),
        [
            ("GPUDeviceUnhealthy", CRITICAL, ON_GPU1),
            ("GPUHealthWarn", WARNING, GPU_A),
            ("KubeNodeNotReady", WARNING, PLAIN),
            ("KubeNodeUnreachable", WARNING, PLAIN),
        ],
        [
            ("GPULost", CRITICAL, ON_GPU2),
            ("GPUPodPending", WARNING, IN_ML),
            ("KubePodCrashLooping", WARNING, PLAIN),
            ("KubeNodeNotReady", WARNING, {"node": "gpu2"}),
        ],
    ),
    "exporter down": (
        ("GPUExporterDown", WARNING, ON_GPU1),
        [("GPUExporterMissingCounters", INFO, ON_GPU1)],
        [
            # one dead GPU can stop the exporter
            ("GPULost", CRITICAL, ON_GPU1),
            ("GPUMetricsMissing", CRITICAL, ON_GPU1),
            ("GPUDeviceUnhealthy", CRITICAL, ON_GPU1),
            ("GPUExporterMissingCounters", INFO, ON_GPU2),
        ],
    ),
    "no exporter at all": (
        ("GPUExporterAbsent", CRITICAL, gpu_labels()),
        [("GPUNodeNotMonitored", WARNING, ON_GPU1)],
        [
            ("GPULost", CRITICAL, ON_GPU2),
            ("GPUDeviceUnhealthy", CRITICAL, ON_GPU1),
            ("GPUPodPending", WARNING, IN_ML),
        ],
    ),
    "fatal XID": (
        ("GPUXidFatal", CRITICAL, GPU_A),
        [("GPUHealthWarn", WARNING, GPU_A), ("GPUXidApplication", INFO, GPU_A)],
        [
            ("GPURecoveryAction", CRITICAL, GPU_A),
            ("GPUXidRepeated", WARNING, GPU_B),
            ("GPUThermalThrottle", WARNING, GPU_A),
        ],
    ),
    "memory that wears out": (
        ("GPUMemoryDegrading", WARNING, GPU_A),
        [("GPUCorrectableECCRate", INFO, GPU_A)],
        [("GPUCorrectableECCRate", INFO, GPU_B), ("GPURowRemapPending", WARNING, GPU_A)],
    ),
    "lost": (
        ("GPULost", CRITICAL, ON_GPU1),
        [("GPUPcieReplay", WARNING, GPU_A), ("GPUXidApplication", INFO, GPU_A)],
        [
            ("GPUThermalThrottle", WARNING, GPU_B),
            ("GPUNodeCordonedLong", WARNING, ON_GPU1),
            ("GPUUncorrectableECC", CRITICAL, GPU_A),
        ],
    ),
    "the same of ours, worse": (
        ("GPUPcieReplay", CRITICAL, GPU_A),
        [("GPUPcieReplay", WARNING, GPU_A)],
        [("GPUPcieReplay", WARNING, GPU_B), ("GPUMemoryHot", WARNING, GPU_A)],
    ),
    "the same of ours, a warning": (
        ("GPUStraggler", WARNING, IN_ML),
        [("GPUStraggler", INFO, IN_ML)],
        [("GPUStraggler", INFO, gpu_labels(namespace="ops")), ("GPUQuotaFull", INFO, IN_ML)],
    ),
    "upstream's critical": (
        ("KubeX", CRITICAL, ML),
        [("KubeX", WARNING, ML), ("KubeX", INFO, ML)],
        [("KubeX", WARNING, OPS), ("KubeY", WARNING, ML), ("KubeX", WARNING, IN_ML)],
    ),
    "upstream's warning": (
        ("KubeZ", WARNING, ML),
        [("KubeZ", INFO, ML)],
        [("KubeZ", INFO, OPS), ("KubeZ", INFO, IN_ML)],
    ),
    "InfoInhibitor of a namespace": (
        ("InfoInhibitor", NONE, ML),
        [("CPUThrottlingHigh", INFO, ML)],
        [
            ("GPUQuotaFull", INFO, IN_ML),
            ("CPUThrottlingHigh", INFO, OPS),
            ("KubeX", WARNING, ML),
        ],
    ),
    "InfoInhibitor of none": (
        ("InfoInhibitor", NONE, {}),
        [],
        [("GPUCorrectableECCRate", INFO, GPU_A), ("NodeSomething", INFO, {})],
    ),
}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, dict[str, str]]]:
    """All rules at once, each in a cluster of its own: what fires first, then the others."""
    clusters = {rule_name: f"cluster-{number}-" for number, rule_name in enumerate(RULES)}

    def labels(rule_name: str, alert: Alert) -> Labels:
        name, severity, extra = alert
        result = {**extra, "alertname": name, "severity": severity, "cluster": clusters[rule_name]}
        # upstream's rules compare namespaces only, so these are each case's own as well
        if "namespace" in extra:
            result["namespace"] = f"{clusters[rule_name]}{extra['namespace']}"
        return result

    with running.site(tmp_path_factory.mktemp("site")) as site:
        site.post(*(labels(rule_name, source) for rule_name, (source, _, _) in RULES.items()))
        time.sleep(GROUP_INTERVAL_S)
        targets = [
            labels(rule_name, alert)
            for rule_name, (_, muted, loud) in RULES.items()
            for alert in (*muted, *loud)
        ]
        site.post(*targets)
        for rule_name, (_, _, loud) in RULES.items():
            for alert in loud:
                site.wait(partial(matches_labels, labels=labels(rule_name, alert)))
        # what arrives late, and what is told again with its group
        time.sleep(2 * GROUP_INTERVAL_S)
        yield site, clusters


def matches_labels(record: running.Record, labels: Labels) -> bool:
    """Whether a message tells of this alert; Slack's has severity and cluster in its title."""
    receiver = {CRITICAL: "pagerduty", WARNING: "slack", INFO: "email"}.get(labels["severity"])
    compared = {"node", "UUID", "namespace"} & labels.keys()
    return (
        record["receiver"] == receiver
        and labels["cluster"] in str(record)
        and any(
            alert["name"] == labels["alertname"]
            and all(alert["labels"].get(key) == labels[key] for key in compared)
            and ("gpu_action" in alert["labels"]) == ("gpu_action" in labels)
            for alert in record["alerts"]
        )
    )


@pytest.mark.parametrize("rule_name", RULES)
def test_consequences_are_kept_quiet_and_nothing_else(
    story: tuple[Site, dict[str, str]], rule_name: str
) -> None:
    site, clusters = story
    _, muted, loud = RULES[rule_name]
    records = show.read(site.journal)

    def is_notified(alert: Alert) -> bool:
        name, severity, extra = alert
        namespace = (
            {"namespace": clusters[rule_name] + extra["namespace"]} if "namespace" in extra else {}
        )
        labels = {**extra, **namespace, "alertname": name, "severity": severity}
        return any(
            matches_labels(record, {**labels, "cluster": clusters[rule_name]}) for record in records
        )

    assert [alert[0] for alert in muted if is_notified(alert)] == []
    assert [alert[0] for alert in loud if not is_notified(alert)] == []
