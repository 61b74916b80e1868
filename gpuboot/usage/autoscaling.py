"""Autoscaling on GPU load: values for prometheus-adapter, an HPA, and a ScaledObject for KEDA.

Two promises. No data is never 0: a workload of which one running pod has no samples yields nothing
at all, and then HPA and KEDA keep the replicas they have. And the query reads our recording rule
`namespace_pod:sm_active:avg2m`, the mean SM activity of the GPUs that each pod holds.

docs/autoscaling.md says when not to use it: a server's own queue tells more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gpuboot.cluster.values import Values
from gpuboot.config.settings import Settings
from gpuboot.monitoring.charts.monitoring_values import STACK
from gpuboot.monitoring.rules.promql import quoted

Object = dict[str, Any]

METRIC = "gpu_sm_active"
SERIES = "namespace_pod:sm_active:avg2m"
TARGET = 0.6


@dataclass(frozen=True)
class Workload:
    """What is scaled.

    + kind, name, namespace: of a Deployment or StatefulSet
    + min_replicas, max_replicas: replicas
    + target: mean SM activity per replica to hold, 0 to 1
    """

    namespace: str
    name: str
    kind: str = "Deployment"
    min_replicas: int = 1
    max_replicas: int = 4
    target: float = TARGET

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise ValueError(f"target {self.target} is not between 0 and 1")
        if not 1 <= self.min_replicas <= self.max_replicas:
            raise ValueError(
                f"replicas {self.min_replicas} to {self.max_replicas}: 1 or more, the lower first"
            )
        if self.kind not in {"Deployment", "StatefulSet"}:
            raise ValueError(f"{self.kind} is neither Deployment nor StatefulSet")

    @property
    def pods(self) -> str:
        """Names of its pods, as a regular expression of PromQL (anchored at both ends).

        `web` must not take the pods of `web-canary`: a Deployment's pods end in two generated
        parts, a StatefulSet's in a number.
        """
        ending = "-[0-9]+" if self.kind == "StatefulSet" else "-[a-z0-9]{1,10}-[a-z0-9]{5}"
        return f"{re.escape(self.name)}{ending}".replace(r"\-", "-")


def load_query(workload: Workload) -> str:
    """PromQL: the sum of the replicas' SM activities; no result where one of them is unknown.

    A sum over only the replicas that are seen would look like less load and scale down.
    """
    pods = f"namespace={quoted(workload.namespace)},pod=~{quoted(workload.pods)}"
    return (
        f"sum({SERIES}{{{pods}}})"
        f" and on () count({SERIES}{{{pods}}})"
        f' >= on () count(kube_pod_status_phase{{{pods},phase="Running"}} == 1)'
    )


def adapter_values(settings: Settings) -> Values:
    """Values of the chart prometheus-adapter: the custom metric `gpu_sm_active` of pods.

    A pod without samples has no such metric; HPA then takes it as fully busy before it scales
    down and as idle before it scales up, so that it does neither on a guess.
    """
    monitoring = settings.monitoring
    service = f"{STACK}-prometheus"
    rule = {
        "seriesQuery": f'{{__name__="{SERIES}",namespace!="",pod!=""}}',
        "resources": {
            "overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}
        },
        "name": {"as": METRIC},
        "metricsQuery": "avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
    }
    return {
        "prometheus": {"url": f"http://{service}.{monitoring.namespace}.svc", "port": 9090},
        "metricsRelistInterval": "1m",
        "rules": {"default": False, "custom": [rule]},
    }


def hpa(workload: Workload) -> Object:
    """A HorizontalPodAutoscaler on the adapter's metric. Replicas that start get time to load."""
    metric = {
        "type": "Pods",
        "pods": {
            "metric": {"name": METRIC},
            "target": {
                "type": "AverageValue",
                "averageValue": f"{round(workload.target * 1000)}m",
            },
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": workload.name, "namespace": workload.namespace},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": workload.kind,
                "name": workload.name,
            },
            "minReplicas": workload.min_replicas,
            "maxReplicas": workload.max_replicas,
            "metrics": [metric],
            "behavior": _behavior(),
        },
    }


def scaled_object(workload: Workload, settings: Settings) -> Object:
    """KEDA's ScaledObject with a Prometheus trigger.

    `ignoreNullValues` is "true" in KEDA unless it is said otherwise, which takes no data for 0 and
    scales down. "false" makes it an error, and after three of those `fallback` keeps what is there
    (`currentReplicas`, KEDA 2.17 and later).
    """
    monitoring = settings.monitoring
    service = f"{STACK}-prometheus"
    trigger = {
        "type": "prometheus",
        "metricType": "AverageValue",
        "metadata": {
            "serverAddress": f"http://{service}.{monitoring.namespace}.svc:9090",
            "query": load_query(workload),
            "threshold": str(workload.target),
            "ignoreNullValues": "false",
        },
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": workload.name, "namespace": workload.namespace},
        "spec": {
            "scaleTargetRef": {"kind": workload.kind, "name": workload.name},
            "minReplicaCount": workload.min_replicas,
            "maxReplicaCount": workload.max_replicas,
            "pollingInterval": 30,
            "cooldownPeriod": 300,
            "fallback": {
                "failureThreshold": 3,
                "replicas": workload.min_replicas,
                "behavior": "currentReplicas",
            },
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior()}},
            "triggers": [trigger],
        },
    }


def _behavior() -> Object:
    """Policies to scale up quickly and down slowly: to load a model again costs minutes of GPUs."""
    return {
        "scaleUp": {
            "stabilizationWindowSeconds": 60,
            "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 600,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 300}],
        },
    }
