"""How surely objects of the cluster show a cause: by its own evidence, others, or old one.

Lines are those of Kubernetes 1.36.3, its plugins and drivers; times vary.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuboot.cluster.objects import Claim
from gpuboot.cluster.pods import Container
from gpuboot.diagnose.facts import Facts
from tests.unit.diagnose_cases_pods import CONTROL, waits
from tests.unit.diagnose_judged import CERTAIN, LIKELY, POSSIBLE, EvidenceCase, restarted
from tests.unit.diagnose_site import (
    DNS,
    EXPORTER,
    EXPORTERS,
    NODES,
    NOW,
    PLUGIN,
    at,
    cluster,
    crashed,
    event,
    gpu_host,
    pod,
    site,
    state,
    stuck,
    waiting,
)


def _api(ago: float, **fields: Any) -> Facts:
    """CoreDNS is not ready, and said so long ago that it does not reach the API server."""
    text = (
        "[ERROR] plugin/kubernetes: Failed to watch: failed to list *v1.Service: Get "
        '"https://10.96.0.1:443/api/v1/services": dial tcp 10.96.0.1:443: i/o timeout'
    )
    return site(
        at=cluster(
            pods=(replace(DNS, ready=False), *fields.pop("pods", ())),
            logs={f"{DNS.key}/main": (at(ago, text),)},
        )
    )


def _offers(*pods: Any, ago: float = 30, line: str = "", **fields: Any) -> Facts:
    """gpu1 offers none of its GPUs; what the device plugin said."""
    nodes = (NODES[0], replace(NODES[1], allocatable={"nvidia.com/gpu": "0"}))
    logs = {f"{PLUGIN.key}/nvidia-device-plugin": (at(ago, line),)} if line else {}
    return site(at=cluster(nodes=nodes, pods=pods, logs=logs, **fields))


_UNHEALTHY = (
    "I1125 06:50:07.243743       1 health.go:64] XidCriticalError: Xid=79 on Device="
    "GPU-1; marking device as unhealthy."
)
_STARTED = replace(
    PLUGIN, containers=(Container("nvidia-device-plugin", True, 0, "running", started=NOW - 8),)
)
_NO_PLUGIN = replace(PLUGIN, node="cp1")
_ENDING = replace(PLUGIN, going=True)

CLUSTER: tuple[EvidenceCase, ...] = (
    EvidenceCase("gpu-unhealthy", "present", _offers(line=_UNHEALTHY, ago=4000), CERTAIN),
    EvidenceCase("gpu-unhealthy", "another", _offers(), LIKELY),
    # the namespace is being deleted, or the DaemonSet rolls: nobody offers the GPUs
    EvidenceCase("gpu-unhealthy", "another", _offers(_NO_PLUGIN), None, "device-plugin-missing"),
    EvidenceCase("gpu-unhealthy", "another", _offers(_STARTED), None, "device-plugin-missing"),
    EvidenceCase("gpu-unhealthy", "another", _offers(_ENDING), None, "device-plugin-missing"),
    # it is well again
    EvidenceCase(
        "gpu-unhealthy",
        "old",
        site(at=cluster(logs={f"{PLUGIN.key}/nvidia-device-plugin": (at(60, _UNHEALTHY),)})),
        None,
    ),
    EvidenceCase("device-plugin-missing", "present", _offers(_NO_PLUGIN), CERTAIN),
    EvidenceCase("device-plugin-missing", "another", _offers(_STARTED), LIKELY),
    EvidenceCase("api-from-pods", "present", _api(20), LIKELY),
    EvidenceCase("api-from-pods", "old", _api(60), POSSIBLE),
    EvidenceCase("api-from-pods", "old", _api(150), None),
    # the API server was started after that
    EvidenceCase(
        "api-from-pods",
        "another",
        _api(
            20,
            pods=(
                pod(
                    "kube-apiserver-cp1",
                    "kube-system",
                    "cp1",
                    containers=(Container("kube-apiserver", True, 1, "running", started=NOW - 10),),
                ),
            ),
        ),
        None,
    ),
    EvidenceCase(
        "exporter-oom",
        "present",
        site(at=cluster(pods=(replace(EXPORTER, **crashed(137, "OOMKilled")),))),
        CERTAIN,
    ),
    EvidenceCase(
        "exporter-oom",
        "another",
        site(at=cluster(pods=(replace(EXPORTER, **restarted(300, "OOMKilled", 137)),))),
        LIKELY,
    ),
    EvidenceCase(
        "exporter-oom",
        "old",
        site(at=cluster(pods=(replace(EXPORTER, **restarted(700, "OOMKilled", 137)),))),
        None,
    ),
    *(
        EvidenceCase(
            "exporter-probe-killed",
            kind,
            site(
                at=cluster(
                    pods=(replace(EXPORTER, **restarted(ago, code=137)),),
                    events=(
                        event(
                            EXPORTER.name,
                            "Unhealthy",
                            "Liveness probe failed: timeout",
                            "gpu-operator",
                            ago,
                        ),
                    ),
                )
            ),
            confidence,
        )
        for kind, ago, confidence in (
            ("present", 30.0, CERTAIN),
            ("another", 400.0, LIKELY),
            ("old", 900.0, None),
        )
    ),
    *(
        EvidenceCase(
            "exporter-stale-collectors",
            kind,
            site(
                at=cluster(
                    pods=(replace(EXPORTER, stamp="sha256:0"),),
                    workloads=(replace(EXPORTERS, rolling=rolling),),
                )
            ),
            confidence,
        )
        for kind, rolling, confidence in (("present", False, CERTAIN), ("another", True, LIKELY))
    ),
    *(
        EvidenceCase(
            "prometheus-down",
            kind,
            site(
                at=cluster(
                    errors={"targets": "no answer in time"},
                    targets=None,
                    pods=(
                        pod(
                            "prometheus-0",
                            "monitoring",
                            ready=ready,
                            labels={"app.kubernetes.io/name": "prometheus"},
                        ),
                    ),
                )
            ),
            confidence,
        )
        for kind, ready, confidence in (("present", False, CERTAIN), ("another", True, LIKELY))
    ),
    *(
        EvidenceCase(
            "volume-mount",
            kind,
            site(
                at=cluster(
                    pods=(pod("train-0", **stuck(reason)),),
                    events=(event("train-0", "FailedMount", "no such volume", ago=ago),),
                )
            ),
            confidence,
        )
        for kind, reason, ago, confidence in (
            ("present", "ContainerCreating", 20.0, CERTAIN),
            ("another", "ErrImagePull", 20.0, None),
            ("old", "ContainerCreating", 400.0, LIKELY),
        )
    ),
    *(
        EvidenceCase(
            "image-rate",
            kind,
            site(
                at=cluster(
                    pods=(pod("train-0", **stuck("ImagePullBackOff", "Back-off pulling image")),),
                    events=(
                        event(
                            "train-0",
                            "Failed",
                            'Failed to pull image "x": 429 Too Many Requests - Server message: '
                            "toomanyrequests",
                            ago=ago,
                        ),
                    ),
                )
            ),
            confidence,
        )
        for kind, ago, confidence in (
            ("present", 20.0, CERTAIN),
            ("another", 500.0, LIKELY),
            ("old", 900.0, None),
        )
    ),
    *(
        EvidenceCase(
            "port-conflict",
            kind,
            site(
                gpu_host(state=state(ports=ports)),
                at=cluster(
                    pods=(pod("node-exporter-x", "monitoring", **crashed(ago=ago)),),
                    logs={
                        "monitoring/node-exporter-x/main/previous": (
                            at(ago, "listen tcp 0.0.0.0:9100: bind: address already in use"),
                        )
                    },
                ),
            ),
            confidence,
        )
        for kind, ports, ago, confidence in (
            ("present", {9100: "prometheus-node-exporter"}, 200, CERTAIN),
            ("another", {}, 200, LIKELY),
        )
    ),
    EvidenceCase(
        "port-conflict",
        "old",
        site(
            at=cluster(
                pods=(pod("node-exporter-x", "monitoring", **restarted(200)),),
                logs={
                    "monitoring/node-exporter-x/main/previous": (
                        at(200, "listen tcp 0.0.0.0:9100: bind: address already in use"),
                    )
                },
            )
        ),
        None,
    ),
)


def _pending(message: str, **fields: Any) -> Facts:
    return site(at=cluster(pods=(waiting(waits(CONTROL, message), claims=("data",)),), **fields))


PENDING = (
    *(
        EvidenceCase(
            "pending-cordon", kind, _pending("1 node(s) were unschedulable", nodes=nodes), certainty
        )
        for kind, nodes, certainty in (
            ("present", (NODES[0], replace(NODES[1], cordoned=True)), CERTAIN),
            # it was uncordoned since the scheduler tried
            ("another", NODES, LIKELY),
        )
    ),
    *(
        EvidenceCase(
            "pending-volume",
            kind,
            _pending(
                "1 pod has unbound immediate PersistentVolumeClaims",
                claims=(Claim("ml", "data", "", "local-path", phase=phase),),
            ),
            certainty,
        )
        for kind, phase, certainty in (
            ("present", "Pending", CERTAIN),
            ("another", "Bound", LIKELY),
        )
    ),
)


CASES = (*CLUSTER, *PENDING)
