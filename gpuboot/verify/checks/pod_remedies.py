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
# Source: cuda-samples, 0_Introduction/vectorAdd/vectorAdd.cu; CUDA's texts of cudaError.
_COMPUTE_ERROR = re.compile(
    "Result verification failed|Test FAILED|uncorrectable ECC|misaligned address|"
    "illegal memory access|unspecified launch failure|hardware stack error"
)
_OLD_DRIVER = re.compile(r"driver version is insufficient|forward compatibility was attempted")
_FABRIC = re.compile(r"system not yet initialized")
_IMAGE = re.compile(r"ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull")


def without_answer(error: str) -> str:
    """The remedy for a pod that gave no answer. + error: what is known of it"""
    return refusal_remedy(error) or _image_remedy(error) or POD_IS_GONE


def _image_remedy(error: str) -> str:
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
    if _OLD_DRIVER.search(error):
        return (
            "the driver is older than the CUDA of verify.image wants: set verify.image to one for "
            f"an older CUDA, or install a newer driver ({remedies.deploy})"
        )
    if _FABRIC.search(error):
        return (
            "the NVLink fabric is not up: `systemctl status nvidia-fabricmanager` and `nvidia-smi "
            "-q | grep -A3 Fabric` on the node; its version has to be the driver's"
        )
    return _image_remedy(error)


def computes_wrong(uuid: str | None, remedies: Remedies) -> str:
    """The remedy for a GPU that answers, and computes wrong or breaks off."""
    gpu = uuid if uuid and uuid.startswith("GPU-") else "GPU"
    return (
        f"{remedies.drain}: this GPU computes wrong. On the node, `journalctl -k -g 'NVRM: Xid'` "
        "and `nvidia-smi -q -d ECC,ROW_REMAPPER` tell of XIDs and memory errors. Stop what holds "
        f"the GPU ({remedies.gpu_clients}), reset it (`nvidia-smi --gpu-reset -i {gpu}`) or reboot "
        "the node, and verify again; if it computes wrong again, have it replaced"
    )
