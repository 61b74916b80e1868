"""The requirements for which gpuboot looks for evidence, by the programme's own ids.

Read in cncf/k8s-ai-conformance at b2c8969 (docs/AIConformance-1.36.yaml, scripts/validate.go,
faq.md) and in kubernetes-sigs/ai-conformance at af907ca (kars/). Levels are those of 1.36; the
programme's file for another release goes before them. The wording of a requirement is in that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from gpuboot.config.support import Source

SOURCE = Source(date(2026, 8, 19), "cncf/k8s-ai-conformance, kubernetes-sigs/ai-conformance")

Level = Literal["MUST", "SHOULD", ""]
_KARS = "https://github.com/kubernetes-sigs/ai-conformance/tree/main/kars"
_CHECKLIST = (
    "https://github.com/cncf/k8s-ai-conformance/blob/main/docs/AIConformance-{release}.yaml"
)
CHECKLIST = _CHECKLIST.format(release="1.36")
FAQ = "https://github.com/cncf/k8s-ai-conformance/blob/main/faq.md"


@dataclass(frozen=True)
class Requirement:
    """A requirement of the programme.

    + level: in 1.36; "" for one of earlier releases
    + title: for people
    + source: the address of its text and of how the programme tests it
    """

    id: str
    level: Level
    title: str
    source: str


def _requirement(name: str, level: Level, title: str, proposal: str) -> Requirement:
    return Requirement(name, level, title, f"{_KARS}/{proposal}")


_ALL = (
    _requirement(
        *("driver_runtime_management", "SHOULD", "Drivers that can be verified"),
        "0001-accelerator-driver-runtime-management",
    ),
    _requirement("gpu_sharing", "SHOULD", "Shared GPUs", "0003-gpu-sharing"),
    _requirement(
        "virtualized_accelerator", "SHOULD", "Virtual GPUs", "0004-virtualized-accelerators"
    ),
    Requirement("ai_inference", "MUST", "Inference by Gateway API", CHECKLIST),
    _requirement(
        *("advanced_inference_ingress", "SHOULD", "Gateway API Inference Extension"),
        "0011-advanced-ingress-inference",
    ),
    _requirement(
        *("high_performance_networking", "SHOULD", "Fast networks between pods"),
        "0010-high-performance-pod-to-pod-communication",
    ),
    _requirement(
        *("disaggregated_inference", "SHOULD", "Disaggregated inference"),
        "0041-disaggregated-inference",
    ),
    _requirement("gang_scheduling", "MUST", "Gang scheduling", "0053-gang-scheduling"),
    _requirement(
        *("cluster_autoscaling", "MUST", "Cluster autoscaling"),
        "0055-cluster-autoscaling-for-accelerators",
    ),
    _requirement(
        *("pod_autoscaling", "MUST", "Pod autoscaling"), "0057-hpa-autoscaling-for-ai-workloads"
    ),
    _requirement(
        *("accelerator_metrics", "MUST", "Metrics of accelerators"),
        "0059-accelerator-performance-metrics",
    ),
    _requirement(
        *("ai_service_metrics", "MUST", "Metrics of AI services"),
        "0061-ai-job-inference-service-metrics",
    ),
    _requirement(
        *("secure_accelerator_access", "MUST", "Secure access to accelerators"),
        "0049-secure-accelerator-access",
    ),
    _requirement(
        *("robust_controller", "MUST", "A controller with a webhook"),
        "0063-robust-crd-controller-operation",
    ),
    _requirement(
        *("dra_support", "", "Dynamic Resource Allocation (a MUST to 1.35)"),
        "0051-accelerator-resource-exposure-allocation",
    ),
)
REQUIREMENTS: Mapping[str, Requirement] = {item.id: item for item in _ALL}
LEVELS: Mapping[str, Level] = {item.id: item.level for item in _ALL}
