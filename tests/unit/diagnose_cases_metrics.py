"""Causes in metrics and in what nodes offer, each beside what looks like it. Texts are what
exporters really print: from their sources and public issues, shortened.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from gpuboot.cluster.open_rights import CLUSTER_BINDINGS, open_rights
from gpuboot.cluster.serving_requests import ServingRequest
from tests.unit.diagnose_site import (
    COREDNS,
    EXPORTER,
    EXPORTERS,
    MONITOR,
    NODES,
    NOW,
    PLUGIN,
    STACK,
    TARGET,
    Case,
    cluster,
    crashed,
    event,
    nodes_with,
    site,
    stuck,
)

EXPORTER_LOG = f"{EXPORTER.key}/main"
TOO_LITTLE = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc "
    "create failed: unable to start container process: container init was OOM-killed (memory limit "
    "too low?): unknown"
)


def dying(name: str, text: str, ready: bool = False) -> dict[str, object]:
    """An exporter that ends with a line, or that has said it and is well."""
    pod = EXPORTER if ready else replace(EXPORTER, **crashed())
    return {"pods": (pod,), "logs": {f"{EXPORTER_LOG}/{name}": (text,)}}


def down(error: str) -> tuple[dict[str, object], ...]:
    return ({**TARGET, "health": "down", "error": error},)


EXPORTING = (
    Case(
        "exporter-oom",
        site(at=cluster(pods=(replace(EXPORTER, **crashed(137, "OOMKilled")),))),
        site(at=cluster(pods=(replace(EXPORTER, **crashed(137, "OOMKilled", ago=7200)),))),
        "OOMKilled 30 s ago",
    ),
    Case(
        "exporter-oom",
        site(at=cluster(pods=(replace(EXPORTER, **stuck("RunContainerError", TOO_LITTLE)),))),
        site(at=cluster(pods=(replace(EXPORTER, **stuck("RunContainerError", "timed out")),))),
        "memory limit too low?",
    ),
    Case(
        "exporter-probe-killed",
        site(
            at=cluster(
                pods=(replace(EXPORTER, **crashed(143, "Error")),),
                events=(
                    event(
                        EXPORTER.name,
                        "Unhealthy",
                        "Liveness probe failed: HTTP probe failed with statuscode: 500",
                        "gpu-operator",
                    ),
                ),
            )
        ),
        site(
            at=cluster(
                events=(
                    event(EXPORTER.name, "Unhealthy", "Readiness probe failed", "gpu-operator"),
                )
            )
        ),
        "statuscode: 500",
    ),
    Case(
        "exporter-unknown-counter",
        site(
            at=cluster(**dying("previous", "FATA[0000] Could not find DCGM field DCGM_FI_DEV_FAKE"))
        ),
        site(at=cluster(**dying("previous", "FATA[0000] Could not find DCGM field X", True))),
        "DCGM_FI_DEV_FAKE",
    ),
    Case(
        "exporter-duplicate-labels",
        site(at=cluster(targets=down('label name "type" is not unique: invalid sample'))),
        site(at=cluster(targets=down("connection refused"))),
        "is not unique",
    ),
    Case(
        "exporter-duplicate-labels",
        site(
            at=cluster(
                **dying(
                    "previous",
                    "FATA[0001] Error creating DCGM fields group: Duplicate Key passed to function",
                )
            )
        ),
        site(at=cluster(**dying("previous", "context deadline exceeded"))),
        "Duplicate Key",
    ),
    Case(
        "exporter-stale-collectors",
        site(at=cluster(collectors={"gpu-operator/metrics/dcgm-metrics.csv": "sha256:2"})),
        site(at=cluster(collectors={})),
        "other collectors",
    ),
    Case(
        "time-slicing-attribution",
        site(
            at=cluster(nodes=nodes_with(labels={**NODES[1].labels, "nvidia.com/gpu.replicas": "4"}))
        ),
        site(
            at=cluster(
                nodes=nodes_with(labels={**NODES[1].labels, "nvidia.com/gpu.replicas": "4"}),
                workloads=(
                    COREDNS,
                    replace(EXPORTERS, env=frozenset({"KUBERNETES_VIRTUAL_GPUS"})),
                ),
            )
        ),
        "among 4 pods",
    ),
)

MONITORING = (
    Case(
        "service-monitor-not-selected",
        site(at=cluster(monitors=((MONITOR, {"release": "other"}),))),
        site(at=cluster(monitors=((MONITOR, {"release": "other"}),), prometheuses=())),
        "selects release=kube-prometheus-stack",
    ),
    Case(
        "service-monitor-not-selected",
        site(
            at=cluster(
                prometheuses=(
                    (
                        STACK,
                        {
                            "serviceMonitorSelector": {},
                            "serviceMonitorNamespaceSelector": {
                                "matchExpressions": [
                                    {"key": "team", "operator": "In", "values": ["ml"]}
                                ]
                            },
                        },
                    ),
                )
            )
        ),
        site(
            at=cluster(
                prometheuses=(
                    (STACK, {"serviceMonitorSelector": {}, "serviceMonitorNamespaceSelector": {}}),
                )
            )
        ),
        MONITOR,
    ),
    Case(
        "service-monitor-missing",
        site(at=cluster(monitors=())),
        site(at=cluster(monitors=(), prometheuses=())),
        "no ServiceMonitor",
    ),
    Case(
        "prometheus-target-down",
        site(at=cluster(targets=down("dial tcp 10.244.1.5:9400: connect: connection refused"))),
        site(at=cluster(targets=({**TARGET, "health": "unknown"},))),
        "connection refused",
    ),
    Case(
        "prometheus-down",
        site(at=cluster(targets=None, errors={"targets": "503 no endpoints available"})),
        site(
            at=cluster(
                targets=None, prometheuses=(), errors={"targets": "404 not found"}, monitors=()
            )
        ),
        "no endpoints",
    ),
)

OFFERING = (
    Case(
        "gpu-unhealthy",
        site(at=cluster(nodes=nodes_with(allocatable={"nvidia.com/gpu": "0"}))),
        site(),
        "0 of 1 allocatable",
    ),
    Case(
        "device-plugin-missing",
        site(
            at=cluster(
                nodes=nodes_with(allocatable={"nvidia.com/gpu": "0"}),
                pods=(replace(PLUGIN, ready=False),),
            )
        ),
        site(at=cluster(nodes=nodes_with(allocatable={"nvidia.com/gpu": "0"}))),
        "is not ready",
    ),
    Case(
        "device-plugin-missing",
        # five minutes later
        site(
            at=cluster(
                nodes=nodes_with(allocatable={}, capacity={}),
                pods=(replace(PLUGIN, node="cp1"),),
            )
        ),
        site(),
        "it offers no GPU",
    ),
)


def rights(group: str) -> dict[str, object]:
    """A binding that gives a group the role `view`."""
    item = {
        "metadata": {"name": "viewers"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": group}],
    }
    return {"rights": tuple(open_rights({CLUSTER_BINDINGS: {"items": [item]}}))}


RIGHTS = (
    Case(
        "open-rights",
        site(at=cluster(**rights("system:unauthenticated"))),
        site(at=cluster(**rights("ml-team"))),
        "ClusterRoleBinding viewers gives system:unauthenticated",
    ),
)


def requested(state: Literal["denied", "pending", "signed"], age_s: float) -> dict[str, object]:
    """What gpu1's kubelet has asked for."""
    message = "The SAN DNS name in the x509 CR is not allowed by the Cloud provider regex"
    text = message if state == "denied" else ""
    return {"serving_requests": (ServingRequest("gpu1", "csr-8x", state, text, NOW - age_s),)}


SERVING = (
    Case(
        "kubelet-certificate",
        site(at=cluster(**requested("denied", 5))),
        site(at=cluster(**requested("signed", 5))),
        "csr-8x of gpu1's kubelet is denied: The SAN DNS name",
    ),
    Case(
        "kubelet-certificate",
        site(at=cluster(**requested("pending", 300))),
        site(at=cluster(**requested("pending", 5))),
        "csr-8x of gpu1's kubelet is pending, for 300 s",
    ),
)
CASES = (*EXPORTING, *MONITORING, *OFFERING, *RIGHTS, *SERVING)
