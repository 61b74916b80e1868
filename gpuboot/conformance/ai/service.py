"""An AI service in miniature: it answers requests, and shows Prometheus how many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.conformance.suite_manifests import restricted

Object = dict[str, Any]

POD, PORT = "service", 8000
METRIC = "gpuboot_conformance_requests_total"
REQUESTS = 20
INFER, _METRICS = "/cgi-bin/infer", "/cgi-bin/metrics"
LABELS = {
    "app.kubernetes.io/managed-by": "gpuboot",
    "app.kubernetes.io/component": "ai-conformance",
}
# busybox's httpd, so that no image is needed that the cluster does not have already
_SCRIPT = f"""\
cd /www && mkdir cgi-bin && : >requests
cat >.{INFER} <<'END'
#!/bin/sh
echo request >>/www/requests
printf 'Content-Type: text/plain\\n\\n%s\\n' "$(busybox hostname)"
END
cat >.{_METRICS} <<'END'
#!/bin/sh
printf 'Content-Type: text/plain; version=0.0.4\\n\\n# TYPE {METRIC} counter\\n'
printf '{METRIC} %s\\n' "$(wc -l </www/requests)"
END
busybox chmod +x .{INFER} .{_METRICS}
exec busybox httpd -f -p {PORT} -h /www
"""


def pod(image: str, name: str = POD) -> Object:
    """The pod. + image: with busybox"""
    container = {
        "name": "service",
        "image": image,
        "command": ["sh", "-c", _SCRIPT],
        "ports": [{"name": "http", "containerPort": PORT}],
        "volumeMounts": [{"name": "www", "mountPath": "/www"}],
        "securityContext": restricted(),
    }
    return {
        "metadata": {"name": name, "labels": {**LABELS, "app": name}},
        "spec": {
            "containers": [container],
            "volumes": [{"name": "www", "emptyDir": {}}],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "activeDeadlineSeconds": 3600,
        },
    }


def monitor() -> Object:
    """The PodMonitor by which Prometheus finds it."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": POD, "labels": dict(LABELS)},
        "spec": {
            "selector": {"matchLabels": {"app": POD}},
            "podMetricsEndpoints": [{"port": "http", "path": _METRICS, "interval": "5s"}],
        },
    }


def evaluate(count: float | None, labels: Mapping[str, str], reason: str) -> Result:
    """Whether Prometheus has counted what was sent.

    + count: in Prometheus; None: it has no such series
    + reason: why the service did not run; "" where it did
    """
    name = "ai_service_metrics"
    if reason:
        return Result(name, "not_run", reason, remedy="mend that, then run again")
    if count is None or count < REQUESTS:
        number = "no series" if count is None else f"{count:g} requests"
        summary = f"a pod served {REQUESTS} requests and Prometheus has {number} of it"
        remedy = "`kubectl -n monitoring get prometheus -o yaml`: its podMonitorSelector"
        return Result(name, "fail", summary, remedy=remedy)
    series = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return Result(
        name,
        "pass",
        "Prometheus found a new service by its PodMonitor and collected the count of its requests.",
        (f"{REQUESTS} requests were sent to the service", f"{METRIC}{{{series}}} {count:g}"),
    )
