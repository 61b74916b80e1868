"""Chooses the nodes that can be tested for long, and makes their pods: one test at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.config.settings import Settings
from gpuboot.verify.deep.deep_answers import EXIT, Answer, Step
from gpuboot.verify.deep.nvbandwidth import CASES
from gpuboot.verify.devices import GPU_RESOURCE, Host
from gpuboot.verify.session import pod_name
from gpuboot.verify.workload_pods import pod_manifest

CONTAINER = "deep"
START_S = 1200  # for a pod to start: DCGM's image is larger than 1 GB
GRACE_S = 60  # a pod whose time is up ends itself this long after nobody waits for it any more
# CUDA numbers GPUs by speed unless it is told to go by the PCI bus, as nvidia-smi and DCGM do.
_SCRIPT = (
    """\
export CUDA_DEVICE_ORDER=PCI_BUS_ID
nvidia-smi -L
{command}
printf '\\n"""
    + EXIT
    + """%s\\n' "$?"
"""
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is done on one node.

    + node: None where nothing can be tried; `skipped` says why
    + gpus: how many it has
    + memory_mib: of the one with the least
    + steps: in their order
    + left_out: tests that are not wanted or cannot be had
    """

    name: str
    node: Node | None
    gpus: int = 0
    memory_mib: int = 0
    steps: tuple[Step, ...] = ()
    left_out: Mapping[Step, Answer]
    skipped: str = ""


def plans(
    hosts: Sequence[Host],
    nodes: Mapping[str, Node],
    gpu_pods: Sequence[Pod],
    settings: Settings,
) -> list[Plan]:
    """A plan for each host. Others' pods are not moved: a node that has one is left alone."""
    return [_plan(host, nodes.get(host.node), gpu_pods, settings) for host in hosts]


def _plan(host: Host, node: Node | None, gpu_pods: Iterable[Pod], settings: Settings) -> Plan:
    holders = sorted(pod.key for pod in gpu_pods if pod.node == host.node)
    if reason := _unfit(host, node, holders, settings):
        return Plan(name=host.node, node=None, left_out={}, skipped=reason)
    without = left_out(settings)
    required_steps: list[Step] = ["diag", "bandwidth"]
    if len(host.working) > 1:
        required_steps.append("collective")
    steps = tuple(step for step in required_steps if step not in without)
    return Plan(
        name=host.node,
        node=node,
        gpus=len(host.working),
        memory_mib=min(gpu.memory_mib or 0 for gpu in host.working),
        steps=steps,
        left_out=without,
    )


def left_out(settings: Settings) -> dict[Step, Answer]:
    """The tests for which the settings have no image."""
    deep = settings.verify.deep
    images: dict[Step, tuple[str | None, str]] = {
        "collective": (deep.nccl_image, "nccl_image names no image with nccl-tests"),
        "internode": (deep.internode.image, "internode.image names no image with nccl-tests"),
    }
    return {
        step: Answer(ended="left out", reason=f"verify.deep.{reason}")
        for step, (image, reason) in images.items()
        if image is None
    }


def _unfit(host: Host, node: Node | None, holders: Sequence[str], settings: Settings) -> str:
    """Why a node cannot be tested; "" where it can."""
    if host.error:
        return host.error
    if node is None or not node.ready:
        return "the node is not Ready"
    if node.kubelet_error:
        return node.kubelet_error
    if holders:
        return f"its GPUs are in use by {', '.join(holders)}"
    if any(gpu.mig for gpu in host.gpus):
        return "MIG is on: these tests need whole GPUs"
    if host.shared(GPU_RESOURCE, settings.gpu_operator.time_slices) > 1:
        return "its GPUs are shared by several pods"
    if not host.working or node.gpus != len(host.working):
        return f"it offers {node.gpus} of {len(host.working)} GPUs"
    return ""


def pod(plan: Plan, step: Step, settings: Settings) -> dict[str, Any]:
    """The pod of one test, which holds all GPUs of its node."""
    assert plan.node is not None
    deep = settings.verify.deep
    script = _SCRIPT.format(command=_command(step, plan, settings))
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": _image(step, settings),
        "command": ["sh", "-c", script],
        "resources": {"limits": {GPU_RESOURCE: str(plan.gpus)}},
    }
    if step == "collective":  # NCCL's processes share buffers by /dev/shm, of which 64 MiB are few
        container["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
    runtime_class = "nvidia" if settings.runtime.mode == "runtimeclass" else ""
    manifest = pod_manifest(
        pod_name(step, plan.name), plan.node, settings, [container], runtime_class
    )
    manifest["spec"]["activeDeadlineSeconds"] = START_S + deep.timeout_s + GRACE_S
    if step == "collective":
        manifest["spec"]["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    return manifest


def _image(step: Step, settings: Settings) -> str:
    deep = settings.verify.deep
    images = {"diag": deep.dcgm_image, "bandwidth": deep.nvbandwidth_image}
    return images.get(step) or deep.nccl_image or ""


def _command(step: Step, plan: Plan, settings: Settings) -> str:
    deep = settings.verify.deep
    if step == "diag":
        return f"nv-hostengine >&2; dcgmi diag -r {deep.diag_level} -j"
    if step == "bandwidth":
        return f"nvbandwidth -j -t {' '.join(CASES)}"
    # one size: small ones say how long a message takes, and not how fast it goes
    size = message_size(plan.memory_mib)
    return f"{deep.nccl_command} -b {size} -e {size} -g {plan.gpus} -c 1"


def message_size(memory_mib: int) -> str:
    """The largest power of two, at most 16 GiB, of which a GPU holds four: it is sent, received,
    and compared with what is right. Of 80 GB that is 16G, of 40 GB 8G, which is what published
    figures were measured with.
    """
    quarter = max(1, memory_mib // 1024 // 4)
    return f"{min(16, 1 << (quarter.bit_length() - 1))}G"
