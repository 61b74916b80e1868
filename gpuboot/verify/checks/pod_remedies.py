"""What to do about a verification's pod or container that failed: by what its log says.

The pods and their namespace are removed when a verification ends, and their events with them, so no
remedy points there.
"""

from __future__ import annotations

import re

from gpuboot.cluster import refusals
from gpuboot.hosts.failures import FAILURES, name_of
from gpuboot.verify.checks.remedies import CLUSTER, Remedies

POD_IS_GONE = (
    "the pod is removed by now, and its events with it: on its node `journalctl -u kubelet -u "
    "containerd --since -15min` tells why; or verify again, and look at its "
    "events meanwhile: `kubectl get events -A`"
)
WITHDRAWN = (
    "its pod was ended before it had computed, which tells nothing of a GPU: `kubectl describe "
    "node {node}` and `kubectl get events -A` tell what ends pods there; verify again then"
)
NOT_CONSIDERED = "the scheduler has not considered it yet"
# Source: cuda-samples, 0_Introduction/vectorAdd/vectorAdd.cu; CUDA's texts of cudaError.
_COMPUTE_ERROR = re.compile(
    "Result verification failed|Test FAILED|uncorrectable ECC|misaligned address|"
    "illegal memory access|unspecified launch failure|hardware stack error"
)
_IMAGE = re.compile(r"ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull")
# what else a container says, and what to do about it; the first that matches
_BY_CAUSE: tuple[tuple[str, str], ...] = (
    (
        "driver version is insufficient|forward compatibility was attempted|unsupported toolchain",
        "the driver is older than the CUDA of verify.image wants: set verify.image to one for an "
        "older CUDA, or install a newer driver ({deploy})",
    ),
    (
        "no kernel image is available|kernel image is invalid",
        "verify.image was built for other models than this GPU: set verify.image to one whose CUDA "
        "knows it",
    ),
    (
        "system not yet initialized",
        "the NVLink fabric is not up: `systemctl status nvidia-fabricmanager` and `nvidia-smi -q | "
        "grep -A3 Fabric` on the node; its version has to be the driver's",
    ),
    (
        "nvidia-smi: not found",
        "nothing of the driver came into the container: a device plugin of your own has to hand "
        "out GPUs by CDI (deviceListStrategy cdi-annotations,cdi-cri), and the node needs a CDI "
        "specification: `nvidia-ctk cdi list`",
    ),
    (
        "exec format error",
        "verify.image is for another processor than the node's: take one that has both, and where "
        "mirrors.images is set, see that the mirror has it for each",
    ),
    (
        'vectorAdd: (not found|No such file|Permission denied)|exec: "sh": executable file not',
        "verify.image lacks a program: set it to an image that has sh and /cuda-samples/vectorAdd, "
        "as NVIDIA's has",
    ),
    (
        "OOMKilled|vectorAdd ended with 137",
        "its container had too little memory: see what limits new pods (a LimitRange or webhook of "
        "the site's), and whether the node has some left (`journalctl -k -g 'Out of memory'`)",
    ),
    (
        "busy or unavailable|error code out of memory",
        "a process that is none of Kubernetes' holds the GPU or its memory: `nvidia-smi` on the "
        "node names it; or its compute mode lets one in at a time (`nvidia-smi -q -d COMPUTE`)",
    ),
    (
        "MPS client|MPS server",
        "see the log of the pod nvidia-device-plugin-mps-control-daemon on this node (`kubectl get "
        "pods -A -o wide | grep mps`), and restart it",
    ),
    (
        "[Dd]river/library version mismatch|driver not loaded",
        "the kernel's driver is not that of the libraries: compare /proc/driver/nvidia/version and "
        "`modinfo nvidia` on the node, and reboot it",
    ),
    (
        "CDI device|fulfil mount request",
        "the node's CDI specification is not that of its driver: `systemctl restart "
        "nvidia-cdi-refresh` or `nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml` there "
        "writes it anew; then verify again",
    ),
    (
        'no runtime for "nvidia"|runtime handler "?nvidia',
        "containerd does not know NVIDIA's runtime: run {deploy}, which writes its configuration",
    ),
    (
        "vectorAdd ended with",
        "CUDA gave up on this GPU: `journalctl -k -g NVRM` and `nvidia-smi -q` on the node tell "
        "more; where they name nothing, reboot the node and verify again",
    ),
)


def without_answer(error: str) -> str:
    """The remedy for a pod that gave no answer. + error: what is known of it"""
    return refusal_remedy(error) or image_remedy(error) or POD_IS_GONE


def image_remedy(error: str) -> str:
    """What to do about an image that is not pulled; "" where the error is another one."""
    if not _IMAGE.search(error):
        return ""
    failure = FAILURES.get(name_of(error))
    remedy = (
        f"{failure.cause}: {failure.remedy}"
        if failure
        else "`crictl pull` of it on the node tells why; see mirrors.images and registries"
    )
    return f"the node cannot pull the pod's image: {remedy}"


def refusal_remedy(error: str) -> str:
    """What to do about what refuses pods of a verification; "" where the error names nothing."""
    remedy = refusals.remedy(error)
    new_namespaces = "verifications make namespaces gpuboot-verify-*: verify again then"
    return f"{remedy}; {new_namespaces}" if remedy else ""


def remedy(error: str, uuid: str | None, remedies: Remedies = CLUSTER) -> str:
    """The remedy for what a failed vectorAdd says; "" where only the node can tell more.

    + uuid: of the GPU or MIG device; None where its log names none
    """
    if _COMPUTE_ERROR.search(error):
        return computes_wrong(uuid, remedies)
    if text := image_remedy(error):
        return text
    text = next((text for pattern, text in _BY_CAUSE if re.search(pattern, error)), "")
    return text.format(deploy=remedies.deploy)


def unscheduled(reason: str, node: str) -> tuple[str, str]:
    """What is said of a pod that no node took, and what to do. + reason: why none did"""
    if reason == NOT_CONSIDERED:
        return reason, (
            "see the scheduler: `kubectl -n kube-system get pods -l component=kube-scheduler`, and "
            "its log; then verify again"
        )
    if "nodes are available" in reason:
        room = f"`kubectl describe node {node}` shows what is taken there; verify again then"
        return f"no room for a pod: {reason}", f"make room: {room}"
    return reason, "verify again"


def computes_wrong(uuid: str | None, remedies: Remedies) -> str:
    """The remedy for a GPU that answers, and computes wrong or breaks off."""
    gpu = uuid if uuid and uuid.startswith("GPU-") else "GPU"
    return (
        f"{remedies.drain}: this GPU computes wrong. On the node, `journalctl -k -g 'NVRM: Xid'` "
        "and `nvidia-smi -q -d ECC,ROW_REMAPPER` tell of XIDs and memory errors. Stop what holds "
        f"the GPU ({remedies.gpu_clients}), reset it (`nvidia-smi --gpu-reset -i {gpu}`) or reboot "
        "the node, and verify again; if it computes wrong again, have it replaced"
    )
