"""Pods that were ended or do not end, nodes that are missing or short of process ids, GPUs and
drivers that are not there, each beside what looks like it. Texts are of the programs' sources.
"""

from __future__ import annotations

from typing import Any

from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.node_certificates import Certificate
from gpuboot.cluster.objects import Condition
from gpuboot.cluster.workloads import Workload
from gpuboot.diagnose.facts import Facts
from gpuboot.hosts.dkms import DkmsState
from gpuboot.hosts.pci import PciDevice
from gpuboot.verify.gpu_state import GpuState
from tests.unit.diagnose_cases_hosts import NO_DRIVER, OFF, XID
from tests.unit.diagnose_judged import CERTAIN, LIKELY, EvidenceCase
from tests.unit.diagnose_site import (
    COREDNS,
    NODES,
    NOW,
    SLOT,
    Case,
    at,
    cluster,
    control,
    crashed,
    gpu_host,
    nodes_with,
    pod,
    site,
    state,
)

LOW = "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 3Gi. "
X509 = (
    'Post "https://wh.x.svc:443/v": tls: failed to verify certificate: x509: certificate signed by '
)
KILLED = "kernel\t[89990.1] Out of memory: Killed process 4242 (python) total-vm:1kB"
BUILT = "nvidia/595.91.07, 6.8.0-80-generic, x86_64: installed"
RECOVERY = "GPU recovery action changed from {} to {}"


def ended_pod(reason: str = "Evicted", text: str = LOW, ago: float = 60, owner: str = "") -> Facts:
    fields: dict[str, Any] = {"phase": "Failed", "ready": False, "created": NOW - ago}
    return site(
        at=cluster(pods=(pod("train-0", reason=reason, message=text, owner=owner, **fields),))
    )


def deleted(ago: float = 900, node: str = "gpu1", **fields: Any) -> Facts:
    item = pod("train-0", node=node, going=True, deleted=NOW - ago, **fields)
    return site(at=cluster(pods=(item,)))


def killed(*lines: str) -> Facts:
    item = pod("train-0", **crashed(137, "OOMKilled"))
    return site(gpu_host(*lines), at=cluster(pods=(item,)))


def refused_pods(text: str) -> Facts:
    workload = Workload(
        kind="ReplicaSet", namespace="ml", name="web", desired=1, ready=0, refusal=text
    )
    return site(at=cluster(workloads=(COREDNS, workload)))


def webhook(text: str) -> Facts:
    return refused_pods(f'failed calling webhook "v.example.com": failed to call webhook: {text}')


def answered(text: str) -> Facts:
    return site(at=cluster(errors={"/api/v1/limitranges": f"GET /api/v1/limitranges: {text}"}))


def pressed(*lines: str, status: str = "False") -> Facts:
    conditions = {"PIDPressure": Condition(status, "kubelet has insufficient PID available")}
    return site(gpu_host(*lines), at=cluster(nodes=nodes_with(conditions=conditions)))


def credentials(expires: float, *lines: str) -> Facts:
    certificate = Certificate("/var/lib/kubelet/pki/kubelet-client-current.pem", expires)
    kubeadm = KubeadmState(files=("kubelet.conf",), clock=NOW, certificates=(certificate,))
    without = ["state\tkubelet"] if lines else []
    return site(gpu_host(*lines, without=without, kubeadm=kubeadm))


def gpu(driver: str, **fields: Any) -> Facts:
    """gpu1, whose GPU has this driver."""
    device = (PciDevice(SLOT, 0x2330, "0x030200", driver=driver),)
    return site(gpu_host(state=state(pci=device, **fields)))


def without_module(*status: str, headers: str = "installed", **fields: Any) -> Facts:
    """gpu1 without a module on disk. + status: of DKMS"""
    plain = {**OFF, "headers": headers, "dkms": DkmsState(status=status), **fields}
    return site(gpu_host(gpu=NO_DRIVER, state=state(**plain), without=["module_file"]))


def recovery(*texts: str) -> Facts:
    line = XID.replace("pid=1, name=x, some text", "{text}")
    return site(gpu_host(*(line.format(at=89000, code=154, text=text) for text in texts)))


NO_TOKEN = (
    "state\tkubelet activating auto-restart exit-code 1 loaded",
    "log\tkubelet "
    + at(9, 'gpu1 kubelet[1]: E1126 run.go:72] "command failed" err="failed to run Kubelet: unable '
         'to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf"'),
)  # fmt: skip
NEEDED = "0x2 (Node Reboot Required)"
CASES = (
    Case("pod-evicted", ended_pod(), ended_pod(ago=4000), "ephemeral-storage"),
    Case(
        "pod-evicted",
        ended_pod("Terminated", "Pod was terminated in response to imminent node shutdown."),
        ended_pod("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed"),
        "imminent node shutdown",
    ),
    Case(
        "pod-rejected",
        ended_pod("SMTAlignmentError", "Pod was rejected: SMT Alignment Error: requested 3 cpus"),
        ended_pod(),
        "SMT Alignment",
    ),
    Case(
        "pod-terminating",
        deleted(finalizers=("batch.kubernetes.io/job-tracking",)),
        deleted(ago=20, finalizers=("batch.kubernetes.io/job-tracking",)),
        "finalizers: batch.kubernetes.io/job-tracking",
    ),
    Case("pod-terminating", deleted(node="gpu9"), deleted(ago=-20), "its node gpu9 is gone"),
    Case(
        "container-out-of-memory",
        killed(),
        site(at=cluster(pods=(pod("train-0", **crashed(137)),))),
        "exit code 137 (OOMKilled)",
    ),
    Case("memory-short", killed(KILLED), killed(), "Out of memory: Killed process 4242"),
    Case(
        "webhook-certificate",
        webhook(f"{X509}unknown authority"),
        webhook(
            'Post "https://wh.x.svc:443/v": dial tcp 10.96.0.9:443: connect: connection refused'
        ),
        "unknown authority",
    ),
    Case(
        "api-overloaded",
        answered("429 Too many requests, please try again later."),
        answered("503 the server is currently unable to handle the request"),
        "Too many requests",
    ),
    Case(
        "etcd-unhealthy",
        site(cp=control('etcd\t{"health":"false","reason":"RAFT NO LEADER"}')),
        site(cp=control('etcd\t{"health":"false","reason":"ALARM NOSPACE"}')),
        "RAFT NO LEADER",
    ),
    Case(
        "process-ids-short",
        pressed("threads\t32000", "max_threads\t32768"),
        pressed("threads\t900", "max_threads\t32768"),
        "32000 processes and threads, of 32768",
    ),
    Case(
        "node-missing",
        site(at=cluster(nodes=NODES[:1])),
        site(gpu_host(error="x", state=None), at=cluster(nodes=NODES[:1])),
        "makes its node only as it starts",
    ),
    Case("kubelet-credentials", credentials(NOW - 60), credentials(NOW + 60), "expired on"),
    Case(
        "kubelet-credentials",
        credentials(NOW + 60, *NO_TOKEN),
        # it runs: that was before
        site(gpu_host(*NO_TOKEN[1:])),
        "bootstrap-kubelet.conf",
    ),
    Case(
        "gpu-other-driver",
        gpu("vfio-pci"),
        gpu("nvidia"),
        f"{SLOT} has the driver vfio-pci\n0 of 1 promised GPUs are left",
    ),
    Case(
        "nouveau-loaded", gpu("nova_core", modules=frozenset({"nova_core"}), **OFF), gpu(""), "nova"
    ),
    Case(
        "gpu-not-on-bus",
        site(gpu_host(state=state(pci=()), gpu=GpuState(smi_error="No devices were found"))),
        site(control()),
        "0 GPUs on the bus, 1 in the inventory",
    ),
    Case("driver-missing", without_module(), without_module(BUILT), "no NVIDIA driver is loaded"),
    Case(
        "module-not-built",
        without_module(BUILT),
        # its headers are what is missing
        without_module(BUILT, headers="missing"),
        "has not built it for the running kernel",
    ),
    Case(
        "gpu-xid",
        recovery(RECOVERY.format("0x0 (None)", NEEDED)),
        recovery(RECOVERY.format("0x0 (None)", NEEDED), RECOVERY.format(NEEDED, "0x0 (None)")),
        "Node Reboot Required",
    ),
)
EVIDENCE_ROWS = (
    EvidenceCase("pod-evicted", "present", ended_pod(), CERTAIN),
    EvidenceCase("pod-evicted", "another", ended_pod(owner="Job train"), LIKELY),
    EvidenceCase("pod-terminating", "present", deleted(finalizers=("example.org/x",)), CERTAIN),
    EvidenceCase("pod-terminating", "another", deleted(), LIKELY),
    EvidenceCase("container-out-of-memory", "present", killed(), CERTAIN),
    EvidenceCase("container-out-of-memory", "another", killed(KILLED), LIKELY, "memory-short"),
    EvidenceCase(
        "process-ids-short", "present", pressed("threads\t32000", "max_threads\t32768"), CERTAIN
    ),
    EvidenceCase("process-ids-short", "old", pressed(status="True"), LIKELY),
    EvidenceCase("kubelet-credentials", "present", credentials(NOW - 60), CERTAIN),
    EvidenceCase("kubelet-credentials", "another", credentials(NOW + 60, *NO_TOKEN), LIKELY),
)
