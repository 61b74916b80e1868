"""Causes in the cluster, each beside what looks like it. Texts are what schedulers, kubelets,
registries and exporters really print: from their sources and public issues, shortened.
"""

from __future__ import annotations

from dataclasses import replace

from gpuboot.cluster.objects import Claim, Condition
from gpuboot.cluster.workloads import Workload
from tests.unit.diagnose_site import (
    COREDNS,
    EXPORTER,
    EXPORTERS,
    NODES,
    OPERATOR,
    TARGET,
    Case,
    cluster,
    crashed,
    event,
    gpu_host,
    nodes_with,
    pod,
    site,
    state,
    stuck,
    waiting,
)

CONTROL = "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }"
END = " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
OPERATOR_LOG = f"{OPERATOR.key}/main"
QUOTA = (
    'pods "many-6d4cf56db6-" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, '
    "limited: pods=0"
)


def waits(*parts: str) -> str:
    return f"0/{len(parts)} nodes are available: {', '.join(parts)}.{END}"


def tainted(taint: str) -> tuple[object, ...]:
    return nodes_with(taints=(taint,))


def down(error: str) -> tuple[dict[str, object], ...]:
    return ({**TARGET, "health": "down", "error": error},)


PENDING = (
    Case(
        "pending-resource",
        site(at=cluster(pods=(waiting(waits(CONTROL, "1 Insufficient nvidia.com/gpu")),))),
        site(at=cluster(pods=(waiting(waits(CONTROL, "1 node(s) were unschedulable")),))),
        "Insufficient nvidia.com/gpu",
    ),
    Case(
        "pending-taint",
        site(
            at=cluster(
                nodes=tainted("gpuboot.io/unproven=:NoSchedule"),
                pods=(waiting(waits(CONTROL, "1 node(s) had untolerated taint {team: ml}")),),
            )
        ),
        site(at=cluster(pods=(waiting(waits(CONTROL, "1 Insufficient cpu")),))),
        "untolerated taint {team: ml}",
    ),
    Case(
        "control-plane-taint",
        site(at=cluster(pods=(waiting(waits(CONTROL)),))),
        site(at=cluster(pods=(waiting(waits(CONTROL, "1 Insufficient cpu")),))),
        "control-plane",
    ),
    Case(
        "control-plane-taint",
        site(
            at=cluster(
                nodes=NODES[:1],
                pods=(waiting(waits("1 node(s) had untolerated taint(s)")),),
            )
        ),
        site(at=cluster(pods=(waiting(waits("2 node(s) had untolerated taint(s)")),))),
        "untolerated taint(s)",
    ),
    Case(
        "pending-affinity",
        site(
            at=cluster(
                pods=(waiting(waits("2 node(s) didn't match Pod's node affinity/selector")),)
            )
        ),
        site(at=cluster(pods=(waiting(waits("2 node(s) had volume node affinity conflict")),))),
        "node affinity/selector",
    ),
    Case(
        "pending-volume",
        site(
            at=cluster(
                pods=(
                    waiting(
                        "0/2 nodes are available: pod has unbound immediate "
                        f"PersistentVolumeClaims.{END}",
                        claims=("data",),
                    ),
                ),
                claims=(Claim("ml", "data", "", "no-such-class", phase="Pending"),),
            )
        ),
        site(
            at=cluster(
                pods=(pod("train-0", claims=("data",)),),
                claims=(Claim("ml", "data", "", "no-such-class", phase="Pending"),),
            )
        ),
        "class no-such-class",
    ),
    Case(
        "pending-port",
        site(
            at=cluster(
                pods=(
                    waiting(waits("2 node(s) didn't have free ports for the requested pod ports")),
                )
            )
        ),
        site(at=cluster(pods=(waiting(waits("2 Too many pods")),))),
        "free ports",
    ),
    *(
        Case(
            "pending-claim",
            site(at=cluster(pods=(waiting(f"0/2 nodes are available: {message},{END}"),))),
            site(at=cluster(pods=(waiting(waits(near_miss)),))),
            evidence,
        )
        for message, near_miss, evidence in (
            (
                "1 cannot allocate all claims, 1 node(s) didn't match Pod's node "
                "affinity/selector. still not schedulable",
                "2 Insufficient nvidia.com/gpu",
                "cannot allocate all claims",
            ),
            (
                "request gpu: device class gpu.nvidia.com does not exist. no new claims to "
                "deallocate",
                "2 node(s) had volume node affinity conflict",
                "device class gpu.nvidia.com does not exist",
            ),
        )
    ),
    Case(
        "pending-nodes",
        site(at=cluster(nodes=(), pods=(waiting("no nodes available to schedule pods"),))),
        site(at=cluster(pods=(waiting(waits("2 Insufficient cpu")),))),
        "no nodes available",
    ),
    Case(
        "pending-cordon",
        site(at=cluster(pods=(waiting(waits(CONTROL, "1 node(s) were unschedulable")),))),
        site(at=cluster(nodes=nodes_with(cordoned=True))),
        "unschedulable",
    ),
    Case(
        "pending-gate",
        site(at=cluster(pods=(pod("g", node="", ready=False, gates=("example.org/x",)),))),
        site(at=cluster(pods=(pod("g", gates=("example.org/x",)),))),
        "example.org/x",
    ),
    Case(
        "pending-quota",
        site(
            at=cluster(
                workloads=(
                    COREDNS,
                    Workload(
                        kind="ReplicaSet",
                        namespace="ml",
                        name="many-6d4cf56db6",
                        desired=1,
                        ready=0,
                        refusal=QUOTA,
                    ),
                )
            )
        ),
        site(
            at=cluster(
                workloads=(
                    COREDNS,
                    Workload(kind="ReplicaSet", namespace="ml", name="m", desired=1, ready=1),
                ),
                events=(replace(event("m", "FailedCreate", QUOTA), kind="ReplicaSet"),),
            )
        ),
        "exceeded quota: none",
    ),
    Case(
        "volume-mount",
        site(
            at=cluster(
                pods=(pod("train-0", **stuck("ContainerCreating")),),
                events=(event("train-0", "FailedMount", "MountVolume.SetUp failed: no such disk"),),
            )
        ),
        site(at=cluster(pods=(pod("train-0"),), events=(event("train-0", "FailedMount", "x"),))),
        "MountVolume.SetUp failed",
    ),
)

PODS = (
    Case(
        "coredns-not-ready",
        site(at=cluster(workloads=(replace(COREDNS, desired=0, ready=0), EXPORTERS))),
        site(at=cluster(workloads=(replace(COREDNS, ready=1), EXPORTERS))),
        "scaled to 0",
    ),
    Case(
        "operator-crash-loop",
        site(
            at=cluster(
                pods=(replace(OPERATOR, **crashed()),),
                logs={
                    f"{OPERATOR_LOG}/previous": (
                        "unable to retrieve the complete list of server APIs: dial tcp "
                        "10.96.0.1:443: i/o timeout",
                    )
                },
            )
        ),
        site(at=cluster(pods=(pod("train-0", **crashed()),))),
        "i/o timeout",
    ),
    Case(
        "pod-crash-loop",
        site(at=cluster(pods=(pod("train-0", **crashed(3)),))),
        site(at=cluster(pods=(replace(EXPORTER, **crashed(137, "OOMKilled")),))),
        "exit code 3",
    ),
    Case(
        "port-conflict",
        site(
            gpu_host(state=state(ports={9100: "node_exporter"})),
            at=cluster(
                pods=(pod("prometheus-node-exporter-x", "monitoring", **crashed()),),
                logs={
                    "monitoring/prometheus-node-exporter-x/main/previous": (
                        'level=ERROR msg="listen tcp :9100: bind: address already in use"',
                    )
                },
            ),
        ),
        site(gpu_host(state=state(ports={9100: "node_exporter"}))),
        "held by node_exporter",
    ),
    Case(
        "operand-desired-zero",
        site(
            at=cluster(
                nodes=tainted("team=ml:NoSchedule"),
                workloads=(COREDNS, replace(EXPORTERS, desired=0, ready=0)),
            )
        ),
        site(at=cluster(nodes=tainted("nvidia.com/gpu=present:NoSchedule"))),
        "team=ml:NoSchedule is not tolerated",
    ),
    Case(
        "operand-unlabelled",
        site(at=cluster(nodes=nodes_with(labels={}))),
        site(gpu_host(gpus=0), at=cluster(nodes=nodes_with(labels={}))),
        "nvidia.com/gpu.deploy.dcgm-exporter=true",
    ),
)

UNPROVEN = replace(
    NODES[1],
    taints=("gpuboot.io/unproven=:NoSchedule",),
    conditions={"GPUsProven": Condition("False", "GPU 1 computes wrong")},
)
GATE = (
    Case(
        "gate-closed",
        site(at=cluster(nodes=(NODES[0], UNPROVEN))),
        site(at=cluster(nodes=tainted("example.com/unproven=:NoSchedule"))),
        "GPUsProven is False: GPU 1 computes wrong",
    ),
    Case(
        "gate-closed",
        site(at=cluster(nodes=nodes_with(labels={"gpuboot.io/unproven": ""}))),
        site(at=cluster(nodes=nodes_with(labels={"gpuboot.io/gpus": "1"}))),
        "label gpuboot.io/unproven",
    ),
)
CASES = (*PENDING, *PODS, *GATE)
