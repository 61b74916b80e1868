"""What keeps parts of a cluster apart, or makes hosts alike, each beside what looks like it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuboot.cluster.objects import Going
from gpuboot.cluster.workloads import Workload
from gpuboot.diagnose.facts import Facts
from tests.unit.diagnose_judged import CERTAIN, LIKELY, EvidenceCase
from tests.unit.diagnose_site import (
    EXPORTER,
    NOW,
    TARGET,
    Case,
    cluster,
    control,
    crashed,
    gpu_host,
    pod,
    site,
    state,
)

PROMETHEUS = pod(
    "prometheus-x-0", "monitoring", "cp1",
    labels={"app.kubernetes.io/name": "prometheus"}, address="10.244.0.7",
)  # fmt: skip
TIMEOUT = 'Get "http://10.244.1.5:9400/metrics": context deadline exceeded'
DOWN = {**TARGET, "health": "down", "error": TIMEOUT}
SECOND = {**TARGET, "url": "http://10.244.1.6:8080/metrics"}
CALICO = Workload(kind="DaemonSet", namespace="kube-system", name="calico-node", desired=2, ready=2)
SPACES = {
    "gpu-operator": {"kubernetes.io/metadata.name": "gpu-operator"},
    "monitoring": {"kubernetes.io/metadata.name": "monitoring"},
}


def denied(
    *ingress: dict[str, Any], enforcer: Workload | None = CALICO, error: str = TIMEOUT, **spec: Any
) -> Facts:
    """A site whose Prometheus does not get the exporter's metrics, beside a policy of its pods."""
    fields = {"podSelector": {"matchLabels": EXPORTER.labels}, "ingress": list(ingress), **spec}
    return site(
        at=cluster(
            pods=(PROMETHEUS, replace(EXPORTER, address="10.244.1.5"), SERVER),
            workloads=(enforcer,) if enforcer else (),
            targets=({**DOWN, "error": error}, SECOND),
            policies=(("gpu-operator/locked", fields),),
            namespaces=SPACES,
        )
    )


def admitting(**rule: Any) -> Facts:
    return denied({"ports": [{"port": 9400}], **rule})


def of_space(name: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


SERVER = pod("server-0", "ml", address="10.244.1.6")
LONE_TARGET = replace(denied(), cluster=replace(denied().cluster, targets=(DOWN,)))
CONVERSION = (
    'conversion webhook for capsule.clastix.io/v1alpha1, Kind=Tenant failed: Post "https://webhook.'
    'system.svc:443/convert?timeout=30s": service "webhook" not found'
)
NFD = "gpu-operator-node-feature-discovery-worker-x"
CASES = (
    *(
        Case("scrape-denied", denied(), near, "gpu-operator/locked admits no pod of monitoring")
        for near in (
            # flannel alone ignores it
            denied(enforcer=None),
            # somebody answers
            denied(error="server returned HTTP status 403 Forbidden"),
            denied(error="dial tcp 10.244.1.5:9400: connect: connection refused"),
            denied(podSelector={"matchLabels": {"app": "x"}}),
            denied(policyTypes=["Egress"]),
            denied({}),
            admitting(),
            admitting(**{"from": [of_space("ml"), of_space("monitoring")]}),
            admitting(**{"from": [{"namespaceSelector": {}}]}),
            admitting(**{"from": [{"ipBlock": {"cidr": "10.244.0.0/16"}}]}),
            denied({"ports": [{"port": "metrics"}]}),
            denied({"ports": [{"port": 9000, "endPort": 9500}]}),
        )
    ),
    *(
        Case("scrape-denied", broken, admitting(), "context deadline exceeded")
        for broken in (
            denied(enforcer=CALICO),
            admitting(**{"from": [of_space("ml")]}),
            # pods of the policy's own namespace alone
            admitting(**{"from": [{"podSelector": {}}]}),
            admitting(
                **{"from": [{"ipBlock": {"cidr": "10.244.0.0/16", "except": ["10.244.0.0/24"]}}]}
            ),
            denied({"ports": [{"port": 8080}]}),
        )
    ),
    Case(
        "machine-id-shared",
        site(gpu_host(state=state(machine_id="y"))),
        site(gpu_host(state=state(machine_id="z"))),
        "cp1 has its machine id y",
    ),
    Case(
        "machine-id-shared",
        site(gpu_host(state=state(machine_id="y"))),
        # of neither it was read
        site(gpu_host(state=state(machine_id="")), control(state=state(machine_id=""))),
        "gpu1 has its machine id y",
    ),
    Case(
        "webhook-conversion",
        site(at=cluster(errors={"/apis/x": f"500: {CONVERSION}"})),
        site(at=cluster(errors={"/apis/x": "404: there is no such thing"})),
        "Kind=Tenant",
    ),
    Case(
        "webhook-conversion",
        site(at=cluster(going=(Going("ml", NOW - 900, (f"Deletion: {CONVERSION}",)),))),
        site(at=cluster(going=(Going("ml", NOW - 900, ("Deletion: has pods",)),))),
        'service "webhook" not found',
    ),
    Case(
        "pod-crash-loop",
        site(at=cluster(pods=(pod(NFD, "gpu-operator", **crashed()),))),
        site(at=cluster(pods=(pod("gpu-operator-x", "gpu-operator", **crashed()),))),
        "started 6 times",
    ),
)
EVIDENCE_ROWS = (
    EvidenceCase("scrape-denied", "present", denied(), CERTAIN, "prometheus-target-down"),
    # nothing else of its node answers either
    EvidenceCase("scrape-denied", "another reason", LONE_TARGET, LIKELY, "prometheus-target-down"),
)
