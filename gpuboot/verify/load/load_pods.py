"""Chooses the nodes that get a pod which keeps GPUs busy, and makes these pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from gpuboot.cluster import node_gate
from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.config.settings import Settings
from gpuboot.verify.devices import GPU_RESOURCE
from gpuboot.verify.session import pod_name
from gpuboot.verify.workload_pods import (
    TOLERATED_TAINTS,
    can_share_a_pod,
    plan_pods,
    pod_manifest,
)

Kind = Literal["compute", "memory", "transfer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MOST_S = 3600
START_S = 600  # for a pod to start: DCGM's image is larger than 1 GB
GRACE_S = 60
CONTAINER = "load"
LABELS = {"app.kubernetes.io/managed-by": "gpuboot", "app.kubernetes.io/component": "load"}
# A closed gate says that nobody has proven the GPUs: verification passes it, a load does not.
TOLERATED = tuple(key for key in TOLERATED_TAINTS if key != node_gate.KEY)
# The profiling field whose load dcgmproftester makes: tensor cores, memory, PCIe from the host.
FIELDS: Mapping[Kind, int] = {"compute": 1004, "memory": 1005, "transfer": 1010}
# $1 seconds, $2 when it is too late to begin (seconds since 1970), $3 dcgmproftester's field, $4
# the one GPU that is wanted or "". dcgmproftester ends at once where it is of another CUDA than
# the driver; it counts GPUs as nvidia-smi does, and knows no UUIDs.
_SCRIPT = """\
listed=$(nvidia-smi -L 2>&1); code=$?
printf '%s\\n' "$listed"
case $listed in *UUID:*) ;; *) exit "$((code ? code : 1))" ;; esac
[ "$(date +%s)" -lt "$2" ] || {
  echo "too late: the command that asked for this has ended"
  exit 1
}
load() {
  begun=$(date +%s) code=1
  for tester in dcgmproftester13 dcgmproftester12 dcgmproftester11; do
    command -v "$tester" >/dev/null 2>&1 || continue
    echo "program $tester"
    "$tester" --no-dcgm-validation -t "$field" -d "$seconds" -i "$1" && return 0
    code=$?
    [ $(($(date +%s) - begun)) -lt 20 ] || return "$code"
  done
  echo "the image has no dcgmproftester that runs with this driver"
  return "$code"
}
seconds=$1 field=$3 wanted=$4 number=0
set -f
for word in $listed; do
  case $word in
    GPU-*")")
      uuid=${word%)}
      if [ -z "$wanted" ] || [ "$wanted" = "$uuid" ]; then
        { (load "$number") 2>&1; echo "exit $?"; } |
          while IFS= read -r line; do printf '%s: %s\\n' "$uuid" "$line"; done &
      fi
      number=$((number + 1)) ;;
  esac
done
wait
"""


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
    """What somebody asks for.

    + kind: compute, memory or transfer
    + seconds: for how long, at most `MOST_S`
    + gpus: at most so many of a node; 0: all that are free
    + uuid: only this GPU; "": any
    """

    kind: Kind
    seconds: int
    gpus: int = 0
    uuid: str = ""


@dataclass(frozen=True)
class Plan:
    """The nodes that get a pod, and those that do not.

    + gpus: node -> how many it asks for
    + left: node -> why it gets none
    """

    gpus: Mapping[str, int]
    left: Mapping[str, str]


def plan(
    names: Iterable[str],
    nodes: Mapping[str, Node],
    gpu_pods: Sequence[Pod],
    settings: Settings,
    request: LoadRequest,
) -> Plan:
    """Plan a pod for the free GPUs of each node. Others' pods are not moved.

    + names: GPU nodes that it is about
    + gpu_pods: pods that hold GPUs now

    To get one GPU by its UUID all free ones of its node are asked for: nobody can choose.
    """
    pod_plan = plan_pods(names, nodes, tuple(gpu_pods), TOLERATED)
    gpus, skipped_nodes = dict[str, int](), dict(pod_plan.skipped_nodes)
    for name, free in pod_plan.pods.items():
        count = free.get(GPU_RESOURCE, 0)
        if reason := _unfit(nodes[name], count, gpu_pods, settings):
            skipped_nodes[name] = reason
        else:
            gpus[name] = min(count, request.gpus) if request.gpus and not request.uuid else count
    return Plan(gpus, skipped_nodes)


def _unfit(node: Node, free: int, gpu_pods: Iterable[Pod], settings: Settings) -> str:
    """Why a node's GPUs are left alone; "" where they are not."""
    if node.mig:
        return "MIG is on: a load is for whole GPUs"
    if not can_share_a_pod(node, settings):
        return "its GPUs are shared by several pods: who else is on one is not known"
    if free:
        return ""
    if not node.gpus:
        return "it offers no GPU"
    holders = sorted(pod.key for pod in gpu_pods if pod.node == node.name)
    return f"its GPUs are held by {', '.join(holders)}"


def pod(node: Node, gpus: int, request: LoadRequest, begin_by: int, settings: Settings) -> Any:
    """The pod that keeps GPUs of a node busy. It ends itself, whatever becomes of who made it.

    + begin_by: seconds since 1970 after which it does nothing
    """
    arguments = (
        str(request.seconds),
        str(begin_by),
        str(FIELDS[request.kind]),
        request.uuid,
    )
    container = {
        "name": CONTAINER,
        "image": settings.verify.deep.dcgm_image,
        "command": ["sh", "-c", _SCRIPT, "sh", *arguments],
        "resources": {"limits": {GPU_RESOURCE: str(gpus)}},
    }
    runtime_class = "nvidia" if settings.runtime.mode == "runtimeclass" else ""
    plain = replace(node, cordoned=False)  # by the scheduler, which knows who else wants a GPU
    manifest = pod_manifest(
        pod_name("load", node.name), plain, settings, [container], runtime_class
    )
    manifest["metadata"]["labels"] = dict(LABELS)
    spec = manifest["spec"]
    spec["activeDeadlineSeconds"] = START_S + request.seconds + GRACE_S
    spec["tolerations"] = [
        toleration for toleration in spec["tolerations"] if toleration["key"] in TOLERATED
    ]
    return manifest
