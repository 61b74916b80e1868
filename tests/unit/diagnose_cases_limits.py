"""Memory limits that nobody gave a container but a LimitRange. Objects are the API server's own."""

from __future__ import annotations

from typing import Any

from gpuboot.cluster.limit_ranges import LimitRange, limit_range
from gpuboot.cluster.pods import parse_pod
from gpuboot.diagnose.facts import Facts
from tests.unit.diagnose_site import Case, cluster, site

# Kubernetes 1.36.3: a pod without limits in a namespace whose LimitRange has defaults
POD: dict[str, Any] = {
    "metadata": {
        "namespace": "monitoring",
        "name": "kube-state-metrics-0",
        "annotations": {
            "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for "
            "container kube-state-metrics; cpu, memory limit for container kube-state-metrics"
        },
    },
    "spec": {
        "nodeName": "gpu1",
        "containers": [
            {
                "name": "kube-state-metrics",
                "resources": {"limits": {"cpu": "100m", "memory": "8Mi"}},
            }
        ],
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [
            {
                "name": "kube-state-metrics",
                "ready": False,
                "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {
                    "terminated": {
                        "exitCode": 137,
                        "reason": "OOMKilled",
                        "finishedAt": "2026-09-21T14:13:00Z",
                    }
                },
            }
        ],
    },
}
SMALL: dict[str, Any] = {
    "metadata": {"namespace": "monitoring", "name": "small"},
    "spec": {
        "limits": [{"type": "Container", "default": {"memory": "8Mi"}, "max": {"memory": "1Gi"}}]
    },
}


def killed(
    note: str | None = None, ranges: tuple[LimitRange, ...] = (limit_range(SMALL),)
) -> Facts:
    """A pod whose container was killed for want of memory. + note: LimitRanger's, where another"""
    annotations = (
        POD["metadata"]["annotations"] if note is None else {"kubernetes.io/limit-ranger": note}
    )
    item = {**POD, "metadata": {**POD["metadata"], "annotations": annotations}}
    return site(at=cluster(pods=(parse_pod(item),), limit_ranges=ranges))


CASES = (
    Case(
        "limit-range-default",
        killed(),
        # the limit is its own: the LimitRange gave it something else
        killed(
            "LimitRanger plugin set: cpu limit for container kube-state-metrics; memory limit for "
            "init container first"
        ),
        "its memory limit of 8Mi is the default of LimitRange monitoring/small",
    ),
    Case(
        "limit-range-default",
        killed(ranges=()),
        killed(""),
        "its memory limit of 8Mi is the default of a LimitRange that is gone since",
    ),
)
