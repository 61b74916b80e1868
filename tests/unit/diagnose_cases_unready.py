"""Pods that do not start or get ready, and GPUs that nobody offers, each beside what looks like it.

Texts are those of kubelets, containerd, CNI plugins and k8s-device-plugin: from their sources and
public issues, shortened.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuboot.cluster.objects import Condition
from gpuboot.cluster.pods import Container
from gpuboot.diagnose.facts import Facts
from gpuboot.hosts.pci import PciDevice
from gpuboot.verify.gpu_state import GpuState
from tests.unit.diagnose_cases_hosts import XID
from tests.unit.diagnose_judged import CERTAIN, LIKELY, POSSIBLE, EvidenceCase
from tests.unit.diagnose_site import (
    ANSWERS,
    COREDNS,
    DNS,
    GPU,
    NODES,
    NOW,
    PLUGIN,
    Case,
    at,
    cluster,
    control,
    crashed,
    event,
    gpu_host,
    nodes_with,
    pod,
    site,
    state,
    stuck,
)

SANDBOX = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for "
    'sandbox "9a3c61bd": '
)
NO_SUBNET = (
    'plugin type="flannel" failed (add): loadFlannelSubnetEnv failed: open '
    "/run/flannel/subnet.env: no such file or directory"
)
CALICO = (
    'plugin type="calico" failed (add): stat /var/lib/calico/nodename: no such file or directory'
)
GPUS_TAKEN = (
    "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
    "nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"
)
NO_GPUS = "I1126 09:00:00.000000       1 main.go:381] No devices found. Waiting indefinitely."
SET_UP: dict[str, Any] = {"conditions": {"PodReadyToStartContainers": Condition("True")}}


def sandbox(text: str, *hosts: str, ago: float = 20, **fields: Any) -> Facts:
    """A pod whose sandbox could not be made. + hosts: more lines of gpu1; fields: of the pod"""
    return site(
        gpu_host(*hosts),
        at=cluster(
            pods=(pod("train-0", **stuck("ContainerCreating"), **fields),),
            events=(event("train-0", "FailedCreatePodSandBox", SANDBOX + text, ago=ago),),
        ),
    )


def waits(reason: str, message: str) -> Facts:
    return site(at=cluster(pods=(pod("train-0", **stuck(reason, message)),)))


def rejected_pod(
    ago: float = 60,
    owner: str = "",
    reason: str = "UnexpectedAdmissionError",
    text: str = GPUS_TAKEN,
) -> Facts:
    fields: dict[str, Any] = {"phase": "Failed", "ready": False, "created": NOW - ago}
    return site(
        at=cluster(pods=(pod("train-0", reason=reason, message=text, owner=owner, **fields),))
    )


def plugin_node(
    number: int, *lines: str, labels: dict[str, str] | None = None, **host: Any
) -> Facts:
    """gpu1 offers this many GPUs. + lines: of the device plugin; host: fields of `Host`"""
    gpus = {"nvidia.com/gpu": str(number)}
    node = replace(NODES[1], allocatable=gpus, capacity=gpus)
    node = replace(node, labels={**node.labels, **(labels or {})})
    logs = {f"{PLUGIN.key}/nvidia-device-plugin": tuple(at(9000, line) for line in lines)}
    return site(gpu_host(**host), at=cluster(nodes=(NODES[0], node), logs=logs))


def board(count: int) -> dict[str, Any]:
    """A host of eight promised GPUs that has these."""
    slots = [f"0000:{16 + number:x}:00.0" for number in range(count)]
    gpus = tuple(replace(GPU, pci=slot, index=index) for index, slot in enumerate(slots))
    pci = tuple(PciDevice(slot, 0x2330, "0x030200") for slot in slots)
    return {"gpus": 8, "gpu": replace(ANSWERS, gpus=gpus), "state": state(pci=pci)}


RUNS: dict[str, Any] = {
    "ready": False,
    "containers": (Container("main", False, 0, "running", started=NOW - 900),),
}
PROBE = event("train-0", "Unhealthy", "Readiness probe failed: HTTP probe failed with 503")
WITH_MIG = replace(ANSWERS, gpus=(replace(GPU, mig=True),))
PARSING = "/etc/coredns/Corefile:12 - Error during parsing: Unknown directive 'forwrd'"
HEALTH = 'etcd\t{"health":"false","reason":"RAFT NO LEADER"}'
SLOW = '{"level":"warn","msg":"slow fdatasync","took":"12.3s","expected-duration":"1s"}'
NO_HANDLE = GpuState(smi_error="Unable to determine the device handle for GPU0: Unknown Error")

CASES = (
    Case("pod-sandbox", sandbox(NO_SUBNET), sandbox(NO_SUBNET, **SET_UP), "subnet.env: no such"),
    # it has just been made: flannel may be starting
    Case("pod-sandbox", sandbox(NO_SUBNET), sandbox(NO_SUBNET, created=NOW - 30), "flannel"),
    Case(
        "pod-sandbox",
        sandbox(CALICO, "cni\t/etc/cni/net.d/10-calico.conflist"),
        site(gpu_host("cni\t/etc/cni/net.d/10-calico.conflist")),
        "10-calico.conflist counts, the first of 10-calico.conflist, 10-flannel.conflist",
    ),
    Case(
        "pod-rejected", rejected_pod(), rejected_pod(ago=4000), "Available: 0, which is unexpected"
    ),
    Case(
        "pod-rejected",
        rejected_pod(reason="OutOfnvidia.com/gpu"),
        rejected_pod(reason="Evicted", text="x"),
    ),
    Case(
        "pod-not-ready",
        waits("CreateContainerConfigError", "failed to prepare subPath for volumeMount"),
        waits("ImagePullBackOff", "Back-off pulling image"),
        "main: CreateContainerConfigError: failed to prepare subPath",
    ),
    Case(
        "pod-not-ready",
        waits("CreateContainerError", "context deadline exceeded"),
        # told by its own name
        sandbox(NO_SUBNET),
        "context deadline exceeded",
    ),
    Case(
        "pod-not-ready",
        site(at=cluster(pods=(pod("train-0", **RUNS),), events=(PROBE,))),
        # its node is not well: that is told
        site(
            at=cluster(
                nodes=nodes_with(ready=False),
                pods=(pod("train-0", **RUNS),),
                events=(PROBE,),
            )
        ),
        "Readiness probe failed",
    ),
    Case(
        "gpus-not-found", plugin_node(0, NO_GPUS), plugin_node(1, NO_GPUS), "Waiting indefinitely"
    ),
    Case(
        "gpus-not-found",
        plugin_node(0, gpu=WITH_MIG),
        plugin_node(4, labels={"nvidia.com/gpu.replicas": "4"}, **board(8)),
        "GPU 0 has MIG switched on",
    ),
    Case(
        "gpus-not-found", plugin_node(7, **board(7)), plugin_node(8, **board(8)), "7 are on its bus"
    ),
    Case(
        "gpu-failed",
        site(gpu_host(XID.format(at=89000, code=79), gpu=NO_HANDLE)),
        # its libraries are of another version
        site(gpu_host(gpu=GpuState(smi_error="NVML: Driver/library version mismatch"))),
        "Unable to determine the device handle",
    ),
    Case(
        "operand-unlabelled",
        site(
            at=cluster(
                nodes=nodes_with(
                    labels={"nvidia.com/gpu.deploy.dcgm-exporter": "paused-for-mig-change"}
                )
            )
        ),
        site(),
        "the node has nvidia.com/gpu.deploy.dcgm-exporter=paused-for-mig-change",
    ),
    Case(
        "coredns-not-ready",
        site(
            at=cluster(
                workloads=(replace(COREDNS, ready=0),),
                pods=(replace(DNS, **crashed()),),
                logs={f"{DNS.key}/main/previous": (at(30, PARSING),)},
            )
        ),
        site(),
        "Unknown directive",
    ),
    Case(
        "api-server-down",
        site(
            gpu_host("api\t500", without=["api"]),
            control("api\t500", HEALTH, f"log\tetcd {at(5, SLOW)}", without=["api"]),
            cluster(error="the API server answers that it does not reach etcd"),
        ),
        site(),
        'etcd: {"health":"false","reason":"RAFT NO LEADER"}\netcd: {"level":"warn","msg":"slow',
    ),
    Case(
        "conntrack-full",
        site(gpu_host("conntrack_count\t262140", "conntrack_max\t262144")),
        site(gpu_host("conntrack_count\t200000", "conntrack_max\t262144")),
        "nf_conntrack_count is 262140, nf_conntrack_max 262144",
    ),
)
EVIDENCE_ROWS = (
    EvidenceCase("pod-sandbox", "present", sandbox(NO_SUBNET), CERTAIN),
    EvidenceCase("pod-sandbox", "old", sandbox(NO_SUBNET, ago=300), LIKELY),
    EvidenceCase("pod-rejected", "present", rejected_pod(), CERTAIN),
    EvidenceCase("pod-rejected", "another", rejected_pod(owner="Job train"), LIKELY),
    EvidenceCase("gpus-not-found", "present", plugin_node(0, NO_GPUS), CERTAIN),
    EvidenceCase("gpus-not-found", "another", plugin_node(0, gpu=WITH_MIG), LIKELY),
    EvidenceCase("pod-not-ready", "present", waits("CreateContainerError", "x"), LIKELY),
    EvidenceCase(
        "pod-not-ready",
        "another",
        site(at=cluster(pods=(pod("train-0", **RUNS),), events=(PROBE,))),
        POSSIBLE,
    ),
)
