"""Links inside Kubernetes: what nodes offer, and what pods computed on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.hosts.mig_devices import uses_mig
from gpuboot.verify.checks import pod_remedies
from gpuboot.verify.checks.layout_checks import expected_resources, other_layout, unsupported_layout
from gpuboot.verify.checks.operating_system import UNPARTITIONED, UNPARTITIONED_REMEDY
from gpuboot.verify.devices import GPU_RESOURCE, Device, Host, MigStrategy
from gpuboot.verify.evidence import Evidence, WorkloadResult
from gpuboot.verify.findings import Finding, FindingBuilder

PLUGIN_REMEDY = (
    "read the device plugin's log on this node (`kubectl get pods -A -o wide | grep device-plugin` "
    "names its pod); a GPU that it marked unhealthy after an XID error comes back when its pod is "
    "restarted"
)
_LEAK_REMEDY = (
    "its container sees GPUs that it was not given: run deploys/site.py, which lets only "
    "privileged containers choose GPUs themselves; the device plugin has to hand them out by CDI"
)
_ALLOCATABLE = "allocatable GPUs = inventory"
_NO_OPERATOR = "the GPU Operator is switched off, and nothing else offers GPUs on this node"
_NOBODY_REMEDY = "set gpu_operator.enabled = True, or install a device plugin, then verify again"
_STRATEGY = "nvidia.com/mig.strategy"  # GPU feature discovery's label: what the plugin runs with


def evaluate(
    host: Host,
    evidence: Evidence,
    slices: int,
    strategy: MigStrategy = "single",
    operator: bool = True,
) -> list[Finding]:
    """Judge allocatable GPUs and MIG devices, and the vectorAdd pods of one node.

    + slices: `settings.gpu_operator.time_slices`
    + strategy: `settings.gpu_operator.mig_strategy`; a node's label wins over it
    + operator: `settings.gpu_operator.enabled`; without it a site may have another device plugin
    """
    node = evidence.nodes.get(host.node)
    if not operator and node and node.ready and not (node.gpus or any(node.mig.values())):
        builder = FindingBuilder("allocatable", _ALLOCATABLE, host.node)
        offer_findings = [
            builder.not_covered(_NO_OPERATOR, _NOBODY_REMEDY, device.uuid)
            for device in host.devices
        ]
    else:
        offer_findings = allocatable(host, evidence, slices, strategy)
    return [
        *offer_findings,
        *workload(host, evidence, slices, strategy),
    ]


def allocatable(
    host: Host, evidence: Evidence, slices: int, strategy: MigStrategy = "single"
) -> list[Finding]:
    """Judge whether a node offers the inventory's GPUs and all of its MIG devices.

    When it offers fewer, those on which a pod ran are offered and the others are the missing ones.
    """
    node = evidence.nodes.get(host.node)
    builder = FindingBuilder("allocatable", _ALLOCATABLE, host.node)
    if error := _node_error(node, host.node):
        return [builder.failed(*error)]
    assert node is not None
    if host.error and uses_mig(node.labels, node.mig):
        return []  # how many MIG devices there ought to be, only the host could tell
    strategy = effective_strategy(node, strategy)
    if strategy == "none" and (mig_devices := [item for item in host.devices if item.instance]):
        remedy = "set gpu_operator.mig_strategy to single or mixed, or switch MIG off"
        reason = "MIG is on, and under the strategy none the device plugin offers no MIG device"
        return [
            builder.not_covered(reason, remedy, device.uuid) for device in mig_devices
        ] + _resource_findings(host, evidence, node, slices, strategy, builder)
    if problem := unsupported_layout(host, strategy) or other_layout(host):
        return [builder.failed(*problem)]
    unpartitioned = [
        builder.not_covered(UNPARTITIONED, UNPARTITIONED_REMEDY, gpu.uuid)
        for gpu in host.unpartitioned
    ]
    return _resource_findings(host, evidence, node, slices, strategy, builder) + unpartitioned


def effective_strategy(node: Node | None, default: MigStrategy) -> MigStrategy:
    """The MIG strategy of a node's device plugin."""
    label = node.labels.get(_STRATEGY, "") if node else ""
    strategies: dict[str, MigStrategy] = {"none": "none", "single": "single", "mixed": "mixed"}
    return strategies.get(label, default)


def _resource_findings(
    host: Host,
    evidence: Evidence,
    node: Node,
    slices: int,
    strategy: MigStrategy,
    builder: FindingBuilder,
) -> list[Finding]:
    expected = expected_resources(host, slices, strategy)
    offered_counts = {GPU_RESOURCE: node.gpus, **node.mig}
    return [
        finding
        for resource in sorted({*expected, *(name for name, n in offered_counts.items() if n)})
        for finding in _compare_count(
            resource,
            offered_counts.get(resource, 0),
            expected.get(resource, 0),
            [item for item in host.devices if item.resource(strategy) == resource],
            frozenset()
            if host.shared(resource, slices) > 1
            else _uuids_seen_by_pods(host, evidence, resource),
            builder,
        )
    ]


def _uuids_seen_by_pods(host: Host, evidence: Evidence, resource: str) -> frozenset[str]:
    """UUIDs that pods of ours saw; empty where that does not tell which are offered.

    Others hold some, which cannot be told apart; or a pod got one and did not tell which.
    """
    if any(pod.node == host.node and (pod.gpus or pod.mig) for pod in evidence.gpu_pods):
        return frozenset()
    results = [result for result in _results_of(host, evidence) if result.resource == resource]
    if any(len(result.uuids) != 1 and not result.unschedulable for result in results):
        return frozenset()
    return frozenset(uuid for result in results for uuid in result.uuids)


def _compare_count(
    resource: str,
    offered_count: int,
    expected: int,
    devices: Sequence[Device],
    run_uuids: frozenset[str],
    builder: FindingBuilder,
) -> list[Finding]:
    """Judge the count of a resource: as many as expected, or which are too many or too few.

    + run_uuids: UUIDs on which pods ran; empty: nobody can say which are offered
    """
    offer = f"{offered_count} of {expected} {resource} allocatable"
    uuids = sorted(device.uuid for device in devices)
    if offered_count == expected:
        return [builder.passed(offer, uuid) for uuid in uuids]
    if offered_count > expected:
        remedy = (
            "correct the inventory's gpus, or gpu_operator.time_slices, and deploy again; where a "
            "plugin of your own shares GPUs, the label nvidia.com/gpu.replicas has to say so"
            if resource == GPU_RESOURCE
            else "nvidia-smi -L lists other MIG devices: restart the device plugin on this node"
        )
        return [builder.failed(offer, remedy)]
    if not run_uuids or not uuids:
        return [builder.failed(offer, PLUGIN_REMEDY)]
    return [
        builder.passed(f"{offer}, this one among them", uuid)
        if uuid in run_uuids
        else builder.failed(f"{offer}, this one is not", PLUGIN_REMEDY, uuid)
        for uuid in uuids
    ]


def _node_error(node: Node | None, name: str) -> tuple[str, str] | None:
    if node is None:
        return f"{name} is not a node of the cluster", "run deploys/site.py, which joins it"
    if not node.ready:
        return f"{name} is not Ready", f"`kubectl describe node {name}` tells why"
    if node.kubelet_error:
        return node.kubelet_error, (
            f"on {name}: `systemctl status kubelet containerd`, `journalctl -u kubelet -n 50`; the "
            "node stays Ready for 40 s after its kubelet's last report"
        )
    return None


def workload(
    host: Host, evidence: Evidence, slices: int, strategy: MigStrategy = "single"
) -> list[Finding]:
    """Judge whether vectorAdd passed in a pod on every device, and each pod saw no other."""
    seconds = evidence.durations.get("workload", 0.0)
    builder = FindingBuilder("workload", "vectorAdd by UUID", host.node, seconds)
    strategy = effective_strategy(evidence.nodes.get(host.node), strategy)
    results = [
        result
        for result in _results_of(host, evidence)
        if not result.unschedulable
        and not (strategy == "none" and _got_whole_mig_gpu(result, host))
    ]
    findings = [_failed_pod(result, builder) for result in results if _error(result)]
    passed = [result for result in results if not _error(result)]
    owners = Counter(result.uuids[0] for result in passed)
    for result in passed:
        findings.append(_passed_pod(result, host, owners, slices, builder))
    reported = {uuid for result in results for uuid in result.uuids}
    without_pod = [device for device in host.devices if device.uuid not in reported]
    return [
        *findings,
        *(_not_run(host, evidence, slices, strategy, builder, device) for device in without_pod),
        *(
            builder.not_covered(UNPARTITIONED, UNPARTITIONED_REMEDY, gpu.uuid)
            for gpu in host.unpartitioned
        ),
    ]


def _got_whole_mig_gpu(result: WorkloadResult, host: Host) -> bool:
    """Whether the pod got a GPU with MIG as a whole, as under the strategy none."""
    mig_uuids = {gpu.uuid for gpu in host.gpus if gpu.mig}
    mig_uuids |= {item.uuid for gpu in host.gpus for item in gpu.instances}
    return bool(result.uuids) and mig_uuids.issuperset(result.uuids)


def _error(result: WorkloadResult) -> str:
    if result.error or not result.passed:
        return result.error or "the log does not say Test PASSED"
    if len(result.uuids) != result.requested:
        saw = len(result.uuids)
        return f"the pod requested {result.requested} {result.resource} and saw {saw} devices"
    return ""


def _failed_pod(result: WorkloadResult, builder: FindingBuilder) -> Finding:
    uuid = result.uuids[0] if len(result.uuids) == 1 else None
    detail, remedy = f"{result.pod}: {_error(result)}", _remedy(result, uuid)
    # a registry that does not deliver tells of a GPU as little as an eviction
    if result.withdrawn or pod_remedies.image_remedy(result.error):
        return builder.unknown(detail, remedy, uuid)
    return builder.failed(detail, remedy, uuid)


def _remedy(result: WorkloadResult, uuid: str | None) -> str:
    error = _error(result)
    if result.withdrawn:
        return pod_remedies.WITHDRAWN.format(node=result.node)
    if "Allocate failed" in result.error:
        return PLUGIN_REMEDY
    if len(result.uuids) > 1:
        return _LEAK_REMEDY
    return pod_remedies.remedy(error, uuid) or pod_remedies.without_answer(error)


def _passed_pod(
    result: WorkloadResult, host: Host, owners: Counter[str], slices: int, builder: FindingBuilder
) -> Finding:
    uuid = result.uuids[0]
    if uuid not in {device.uuid for device in host.devices}:
        remedy = "nvidia-smi on the node does not list it: restart the device plugin, then verify"
        return builder.failed(f"{result.pod} ran on {uuid}, which the host lacks", remedy, uuid)
    if owners[uuid] > 1 and host.shared(result.resource, slices) == 1:
        remedy = "one GPU was handed out twice: restart the device plugin and the kubelet"
        return builder.failed(f"{owners[uuid]} pods ran on it at once", remedy, uuid)
    return builder.passed(f"Test PASSED in {result.seconds:.1f} s", uuid)


def _not_run(
    host: Host,
    evidence: Evidence,
    slices: int,
    strategy: MigStrategy,
    builder: FindingBuilder,
    device: Device,
) -> Finding:
    """The finding why no pod ran on this GPU or MIG device. No such reason is a pass."""
    uuid, resource = device.uuid, device.resource(strategy)
    if reason := evidence.skipped_nodes.get(host.node):
        return builder.not_covered(reason, "verify again when that is over", uuid)
    results = [result for result in _results_of(host, evidence) if result.resource == resource]
    gpu_pods = [pod for pod in evidence.gpu_pods if pod.node == host.node and _holds(pod, resource)]
    if waiting := next((result.error for result in results if result.unschedulable), ""):
        return builder.not_covered(*pod_remedies.unscheduled(waiting, host.node), uuid)
    if gpu_pods:
        return builder.not_covered(_held_by(gpu_pods), "verify again when it is free", uuid)
    if host.shared(resource, slices) > 1:
        reason = "its GPUs are shared: the scheduler does not say which of them a pod gets"
        return builder.not_covered(reason, "verify before they are shared", uuid)
    if silent := next((result for result in results if not result.uuids), None):
        cause = "a pod failed before it listed its GPU"
        return builder.unknown(cause, _remedy(silent, None), uuid)
    return builder.not_covered(f"the node offered no {resource} for it", PLUGIN_REMEDY, uuid)


def _holds(pod: Pod, resource: str) -> bool:
    return bool(pod.gpus if resource == GPU_RESOURCE else pod.mig.get(resource))


def _held_by(gpu_pods: Sequence[Pod]) -> str:
    return "held by " + ", ".join(sorted(pod.key for pod in gpu_pods))


def _results_of(host: Host, evidence: Evidence) -> list[WorkloadResult]:
    return [result for result in evidence.workload_results if result.node == host.node]
