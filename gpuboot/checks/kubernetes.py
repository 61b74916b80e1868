"""Links inside Kubernetes: what nodes offer, and what pods computed on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuboot.checks.evidence import Evidence, GpuPod, Host, KubeNode, Trial
from gpuboot.checks.model import Finding, Scribe

PLUGIN_REMEDY = (
    "read the device plugin's log on this node (`kubectl -n gpu-operator logs -l "
    "app=nvidia-device-plugin-daemonset`); a GPU that it marked unhealthy after an XID error "
    "comes back when its pod is started anew"
)


def judge(host: Host, seen: Evidence, slices: int) -> list[Finding]:
    """Allocatable GPUs and the vectorAdd pods of one node.

    + slices: `settings.gpu_operator.time_slices`
    """
    return [*allocatable(host, seen, slices), *workload(host, seen, slices)]


def allocatable(host: Host, seen: Evidence, slices: int) -> list[Finding]:
    """The node offers as many GPUs as the inventory promises.

    When it offers fewer, GPUs on which a pod ran are offered and the others are the missing ones.
    """
    node = seen.nodes.get(host.node)
    scribe = Scribe("allocatable", "allocatable GPUs = inventory", host.node)
    if trouble := _node_trouble(node, host.node):
        return [scribe.failed(*trouble)]
    assert node is not None
    if any(gpu.mig for gpu in host.gpus):
        reason = f"MIG is on: the node offers {node.mig} MIG devices and {node.gpus} whole GPUs"
        return _each(host, scribe, reason, "count MIG devices against your MIG profile")
    wanted = host.expected * slices
    offer = f"{node.gpus} of {wanted} nvidia.com/gpu allocatable"
    if node.gpus == wanted:
        return [scribe.passed(offer, uuid) for uuid in sorted(host.uuids)]
    if node.gpus > wanted:
        remedy = "correct the inventory's gpus, or gpu_operator.time_slices, and deploy again"
        return [scribe.failed(offer, remedy)]
    ran = {uuid for trial in _trials(host, seen) for uuid in trial.uuids}
    busy = any(pod.node == host.node for pod in seen.holders)
    if busy or slices > 1 or not ran:
        return [scribe.failed(offer, PLUGIN_REMEDY)]
    return [
        scribe.passed(f"{offer}, this one among them", uuid)
        if uuid in ran
        else scribe.failed(f"{offer}, this one is not", PLUGIN_REMEDY, uuid)
        for uuid in sorted(host.uuids)
    ] or [scribe.failed(offer, PLUGIN_REMEDY)]


def _node_trouble(node: KubeNode | None, name: str) -> tuple[str, str] | None:
    if node is None:
        return f"{name} is no node of the cluster", "run deploys/site.py, which joins it"
    if not node.ready:
        return f"{name} is not Ready", f"`kubectl describe node {name}` tells why"
    if node.silent:
        return node.silent, (
            f"on {name}: `systemctl status kubelet containerd`, `journalctl -u kubelet -n 50`; the "
            "node stays Ready for 40 s after its kubelet's last report"
        )
    return None


def workload(host: Host, seen: Evidence, slices: int) -> list[Finding]:
    """vectorAdd passed in a pod on every GPU, and each pod saw its own GPU alone."""
    seconds = seen.seconds.get("workload", 0.0)
    scribe = Scribe("workload", "vectorAdd by UUID", host.node, seconds)
    trials = [trial for trial in _trials(host, seen) if not trial.unschedulable]
    if any(gpu.mig for gpu in host.gpus):
        reason = "MIG is on: pods get parts of a GPU"
        return _each(host, scribe, reason, "run your own pod on a MIG device")
    findings = [_broken(trial, scribe) for trial in trials if _trouble(trial)]
    good = [trial for trial in trials if not _trouble(trial)]
    owners = Counter(trial.uuids[0] for trial in good)
    for trial in good:
        findings.append(_judge_trial(trial, host, owners, slices, scribe))
    told = {uuid for trial in trials for uuid in trial.uuids}
    return findings + [
        _not_run(host, seen, slices, scribe, uuid) for uuid in sorted(host.uuids - told)
    ]


def _trouble(trial: Trial) -> str:
    if trial.trouble or not trial.passed:
        return trial.trouble or "the log does not say Test PASSED"
    if len(trial.uuids) != 1:
        return f"the pod asked for 1 GPU and saw {len(trial.uuids)}"
    return ""


def _broken(trial: Trial, scribe: Scribe) -> Finding:
    uuid = trial.uuids[0] if len(trial.uuids) == 1 else None
    many = len(trial.uuids) > 1
    if "Allocate failed" in trial.trouble:
        return scribe.failed(f"{trial.pod}: {trial.trouble}", PLUGIN_REMEDY, uuid)
    remedy = (
        "containers see GPUs they were not given: check runtime.mode and that "
        "accept-nvidia-visible-devices-envvar-when-unprivileged is off in the toolkit's config"
        if many
        else f"the pod's events and log tell why: `kubectl -n {trial.namespace} get events`, and "
        "the containerd and kubelet journals of the node"
    )
    return scribe.failed(f"{trial.pod}: {_trouble(trial)}", remedy, uuid)


def _judge_trial(
    trial: Trial, host: Host, owners: Counter[str], slices: int, scribe: Scribe
) -> Finding:
    uuid = trial.uuids[0]
    if uuid not in host.uuids:
        remedy = "nvidia-smi on the node does not list it: restart the device plugin, then verify"
        return scribe.failed(f"{trial.pod} ran on {uuid}, which the host lacks", remedy, uuid)
    if owners[uuid] > 1 and slices == 1:
        remedy = "one GPU was handed out twice: restart the device plugin and the kubelet"
        return scribe.failed(f"{owners[uuid]} pods ran on it at once", remedy, uuid)
    return scribe.passed(f"Test PASSED in {trial.seconds:.1f} s", uuid)


def _not_run(host: Host, seen: Evidence, slices: int, scribe: Scribe, uuid: str) -> Finding:
    """Why no pod ran on this GPU. None of the answers is a pass."""
    if reason := seen.skipped.get(host.node):
        return scribe.not_covered(reason, "verify again when that is over", uuid)
    holders = [pod for pod in seen.holders if pod.node == host.node]
    if waiting := next((t.trouble for t in _trials(host, seen) if t.unschedulable), ""):
        return scribe.not_covered(f"no room for a pod: {waiting}", "verify again", uuid)
    if holders:
        return scribe.not_covered(_held_by(holders), "verify again when it is free", uuid)
    if slices > 1:
        reason = "time-slicing: the scheduler does not say which GPU a pod gets"
        return scribe.not_covered(reason, "verify with time_slices = 1", uuid)
    if any(not trial.uuids for trial in _trials(host, seen)):
        return scribe.unknown("a pod failed before it told its GPU", "see the failed pod", uuid)
    return scribe.not_covered("the node did not offer it to a pod", PLUGIN_REMEDY, uuid)


def _held_by(holders: Sequence[GpuPod]) -> str:
    return "held by " + ", ".join(sorted(pod.key for pod in holders))


def _trials(host: Host, seen: Evidence) -> list[Trial]:
    return [trial for trial in seen.trials if trial.node == host.node]


def _each(host: Host, scribe: Scribe, reason: str, remedy: str) -> list[Finding]:
    return [scribe.not_covered(reason, remedy, uuid) for uuid in sorted(host.uuids)]
