"""The link `attribution`: series name the pod that holds the GPU or MIG device."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from gpuboot.verify.checks.kubernetes import effective_strategy
from gpuboot.verify.checks.limits import Limits, monitored_devices
from gpuboot.verify.checks.operating_system import UNPARTITIONED, UNPARTITIONED_REMEDY
from gpuboot.verify.devices import Device, SeriesKey
from gpuboot.verify.evidence import VERIFY_PREFIX, Evidence, Host
from gpuboot.verify.findings import Finding, FindingBuilder


def attribution(host: Host, evidence: Evidence, limits: Limits) -> list[Finding]:
    """Series name the pod that holds the GPU or MIG device; what nobody holds names no pod."""
    builder = FindingBuilder("attribution", "pod labels = pods", host.node)
    series = evidence.metrics.series
    if series is None:
        return []
    if limits.slices > 1:
        # with KUBERNETES_VIRTUAL_GPUS, which gpuboot sets, every share has a series of its own
        reason = "GPUs are shared: their series name every pod that shares them, not one each"
        remedy = "verify before they are shared"
        return [
            builder.not_covered(reason, remedy, device.uuid) for device in monitored_devices(host)
        ]
    strategy = effective_strategy(evidence.nodes.get(host.node), limits.strategy)
    ours = _our_pods_by_series(host, evidence)
    other_pods = {pod.key for pod in evidence.gpu_pods if pod.node == host.node}
    series_keys = {reading.key for reading in series}
    findings = [
        _strategy_none(device, builder)
        if strategy == "none" and device.instance
        else _device_finding(device, evidence, ours, other_pods, builder)
        for device in sorted(host.devices, key=lambda item: item.uuid)
        if device.key in series_keys
    ]
    unpartitioned = [
        builder.not_covered(UNPARTITIONED, UNPARTITIONED_REMEDY, gpu.uuid)
        for gpu in host.unpartitioned
    ]
    return findings + unpartitioned + _idle_findings(host, evidence, other_pods, builder)


def _strategy_none(device: Device, builder: FindingBuilder) -> Finding:
    why = "under the MIG strategy none no pod holds a MIG device"
    return builder.not_covered(why, "set gpu_operator.mig_strategy", device.uuid)


def _our_pods_by_series(host: Host, evidence: Evidence) -> dict[SeriesKey | None, set[str]]:
    """The pods of ours that hold what one series is about; compute instances share one."""
    keys = {device.uuid: device.key for device in host.devices}
    pods: dict[SeriesKey | None, set[str]] = {}
    for result in evidence.workload_results:
        if len(result.uuids) == 1 and (key := keys.get(result.uuids[0])):
            pods.setdefault(key, set()).add(result.key)
    return pods


def _device_finding(
    device: Device,
    evidence: Evidence,
    ours: Mapping[SeriesKey | None, set[str]],
    other_pods: set[str],
    builder: FindingBuilder,
) -> Finding:
    uuid = device.uuid
    series = evidence.metrics.series or ()
    named = {reading.pod for reading in series if reading.key == device.key} - {""}
    if our_pods := ours.get(device.key):
        held = ", ".join(sorted(our_pods))
        if named and named <= our_pods:
            return builder.passed(
                f"its series name {', '.join(sorted(named))}, which holds it", uuid
            )
        if stored := _named_before_the_next_sample(device, evidence, our_pods, named):
            return builder.passed(stored, uuid)
        others = ", ".join(sorted(named)) or "no pod"
        return builder.failed(
            f"{held} holds it, its series name {others}",
            "the exporter needs DCGM_EXPORTER_KUBERNETES=true and the kubelet's pod-resources "
            "socket; the ServiceMonitor must drop the target's own pod and namespace labels",
            uuid,
        )
    if named and named <= other_pods:
        return builder.passed(f"its series name {', '.join(named)}, which holds a GPU here", uuid)
    return builder.not_covered(
        "no pod of this verification held it, so there was no name to check", "", uuid
    )


def _named_before_the_next_sample(
    device: Device, evidence: Evidence, our_pods: set[str], named: set[str]
) -> str:
    """How it is known that Prometheus' next sample will name the pod; "" when it is not.

    The exporter names it already, and what the exporter names Prometheus keeps: it has stored the
    name of an earlier verification's pod with this GPU, and its configuration is the same since.

    + named: pods that Prometheus' series name now
    """
    stored = evidence.earlier_names.get(device.key) if device.key else None
    exported = {
        reading.pod
        for answer in evidence.metrics.exporters
        for reading in answer.readings
        if reading.key == device.key
    }
    current = all(name.startswith(VERIFY_PREFIX) for name in named)
    if stored is None or not current or not exported or not exported <= our_pods:
        return ""
    when = datetime.fromtimestamp(stored, UTC)
    return (
        f"the exporter names {', '.join(sorted(exported))}, which holds it; Prometheus stored such "
        f"a name at {when:%Y-%m-%dT%H:%M:%SZ}, and its configuration is the same since"
    )


def _idle_findings(
    host: Host, evidence: Evidence, other_pods: set[str], builder: FindingBuilder
) -> list[Finding]:
    """Before our pods ran, only pods that held a GPU may have been named."""
    subjects = {device.key: device.uuid for device in monitored_devices(host)}
    return [
        builder.failed(
            f"its series named {reading.pod}, which held no GPU",
            "idle GPUs carry the exporter's own pod when honorLabels meets target labels: drop "
            "pod, namespace and container from the target's labels (labeldrop)",
            subjects[reading.key],
        )
        for reading in evidence.idle_series or ()
        if reading.key in subjects
        and reading.pod
        and reading.pod not in other_pods
        # one that has ended: it held the GPU when the sample was taken
        and not reading.pod.startswith(VERIFY_PREFIX)
    ]
