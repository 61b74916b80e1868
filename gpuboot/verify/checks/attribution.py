"""The link `attribution`: series name the pod that holds the GPU or MIG device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from gpuboot.verify.checks.kubernetes_checks import effective_strategy
from gpuboot.verify.checks.limits import Limits, monitored_devices
from gpuboot.verify.checks.operating_system import UNPARTITIONED, UNPARTITIONED_REMEDY
from gpuboot.verify.devices import Device, Host, SeriesKey
from gpuboot.verify.evidence import VERIFY_PREFIX, Evidence
from gpuboot.verify.findings import Finding, FindingBuilder

_NOT_HELD = "no pod of this verification held it, so there was no name to check"
_SHARES = (
    "the exporter needs KUBERNETES_VIRTUAL_GPUS=true and DCGM_EXPORTER_KUBERNETES=true, and the "
    "kubelet's pod-resources socket; the ServiceMonitor must drop the target's own pod and "
    "namespace labels; where a plugin of your own offers shared GPUs as nvidia.com/gpu.shared, the "
    "exporter needs NVIDIA_RESOURCE_NAMES=nvidia.com/gpu.shared as well"
)


def attribution(host: Host, evidence: Evidence, limits: Limits) -> list[Finding]:
    """Judge whether series name the pod that holds a device, and none where nobody holds it."""
    builder = FindingBuilder("attribution", "pod labels = pods", host.node)
    series = evidence.metrics.series
    if series is None:
        return []
    strategy = effective_strategy(evidence.nodes.get(host.node), limits.strategy)
    pods_by_series = _our_pods_by_series(host, evidence)
    other_pods = {pod.key for pod in evidence.gpu_pods if pod.node == host.node}
    series_keys = {reading.key for reading in series}
    findings = [
        _strategy_none(device, builder)
        if strategy == "none" and device.instance
        else _shared_finding(
            device, _shares(device, host, evidence, pods_by_series), evidence, builder
        )
        if host.shared(device.resource(strategy), limits.slices) > 1
        else _device_finding(device, evidence, pods_by_series, other_pods, builder)
        for device in sorted(host.devices, key=lambda item: item.uuid)
        if device.key in series_keys
    ]
    unpartitioned = [
        builder.not_covered(UNPARTITIONED, UNPARTITIONED_REMEDY, gpu.uuid)
        for gpu in host.unpartitioned
    ]
    return findings + unpartitioned + _idle_findings(host, evidence, other_pods, builder)


def _strategy_none(device: Device, builder: FindingBuilder) -> Finding:
    reason = "under the MIG strategy none no pod holds a MIG device"
    return builder.not_covered(reason, "set gpu_operator.mig_strategy", device.uuid)


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
    pods_by_series: Mapping[SeriesKey | None, set[str]],
    other_pods: set[str],
    builder: FindingBuilder,
) -> Finding:
    uuid = device.uuid
    series = evidence.metrics.series or ()
    named_pods = {reading.pod for reading in series if reading.key == device.key} - {""}
    if our_pods := pods_by_series.get(device.key):
        if named_pods and named_pods <= our_pods:
            return builder.passed(
                f"its series name {', '.join(sorted(named_pods))}, which holds it", uuid
            )
        exported = _exported(device, evidence)
        all_have_ended = all(name.startswith(VERIFY_PREFIX) for name in named_pods)
        if exported and exported <= our_pods and all_have_ended:
            stored = _named_before_the_next_sample(device, evidence, exported)
            if stored:
                return builder.passed(stored, uuid)
        other_names = ", ".join(sorted(named_pods)) or "no pod"
        return builder.failed(
            f"{_holding(our_pods)} it, its series name {other_names}",
            "the exporter needs DCGM_EXPORTER_KUBERNETES=true and the kubelet's pod-resources "
            "socket; the ServiceMonitor must drop the target's own pod and namespace labels",
            uuid,
        )
    if named_pods and named_pods <= other_pods:
        return builder.passed(
            f"its series name {', '.join(named_pods)}, which holds a GPU here", uuid
        )
    return builder.not_covered(_NOT_HELD, "", uuid)


@dataclass(frozen=True)
class _Shares:
    """Who holds shares of a device, by its series and by what is known of pods.

    + named_shares: pod, container and number of each share that series name
    + own_pods, elsewhere: pods of this verification that hold it, and that hold other devices
    + other_pods: other pods that hold something of the node
    + share_count: devices that have these series: compute instances of one GPU instance
    """

    named_shares: frozenset[tuple[str, ...]]
    own_pods: Set[str]
    elsewhere: Set[str]
    other_pods: Set[str]
    share_count: int

    @property
    def pods(self) -> set[str]:
        return {pod for pod, *_ in self.named_shares}

    @property
    def unknown(self) -> set[str]:
        """Named pods of which nothing is known; other verifications' have just ended."""
        pods = self.pods - self.own_pods - self.elsewhere - self.other_pods
        return {name for name in pods if not name.startswith(VERIFY_PREFIX)}

    @property
    def problem(self) -> str:
        """What is wrong with the names; "" when nothing is."""
        if missing := self.own_pods - self.pods:
            return f"{_holding(missing)} a share of it, its series name {_join_names(self.pods)}"
        if foreign_pods := self.pods & self.elsewhere:
            return (
                f"its series name {_join_names(foreign_pods)}, which holds a share of another GPU"
            )
        if unnumbered := {pod for pod, _, number in self.named_shares if not number}:
            return f"its series name {_join_names(unnumbered)} without saying which share"
        numbers = Counter(number for _, _, number in self.named_shares)
        if twice := sorted(number for number, count in numbers.items() if count > self.share_count):
            pods = {pod for pod, _, number in self.named_shares if number == twice[0]}
            return f"its series give share {twice[0]} to several containers, of {_join_names(pods)}"
        return ""


def _shares(
    device: Device, host: Host, evidence: Evidence, own_pods: Mapping[SeriesKey | None, set[str]]
) -> _Shares:
    our_pods = own_pods.get(device.key, set())
    return _Shares(
        named_shares=frozenset(
            (item.pod, *(*item.share, "", "")[:2])  # beside that there may be an HPC job
            for item in evidence.metrics.series or ()
            if item.key == device.key and item.pod
        ),
        own_pods=our_pods,
        elsewhere={pod for pods in own_pods.values() for pod in pods} - our_pods,
        other_pods={pod.key for pod in evidence.gpu_pods if pod.node == host.node},
        share_count=sum(sibling.key == device.key for sibling in host.devices),
    )


def _shared_finding(
    device: Device, shares: _Shares, evidence: Evidence, builder: FindingBuilder
) -> Finding:
    """Judge a shared GPU: each held share must have a series, with its pod and number.

    The exporter makes one for each share that the kubelet says a container holds, where it runs
    with KUBERNETES_VIRTUAL_GPUS, as gpuboot has it run; else the last of the pods stands for all
    (dcgm-exporter 4.8.4, internal/pkg/transformation/kubernetes.go, toDeviceToSharingPods and
    toDeviceToPod). What our pods hold is known from what they saw; of others' pods, only that they
    hold something of this node.
    """
    uuid = device.uuid
    exported = _exported(device, evidence)
    own_pods = shares.own_pods
    if own_pods - shares.pods and own_pods <= exported and not exported & shares.elsewhere:
        stored = _named_before_the_next_sample(device, evidence, own_pods)
        if stored and not shares.unknown:
            return builder.passed(stored, uuid)
    if shares.problem:
        return builder.failed(shares.problem, _SHARES, uuid)
    if shares.unknown:
        reason = f"its series name {_join_names(shares.unknown)}, which held no GPU when this began"
        return builder.not_covered(reason, "verify again: it may be a new pod", uuid)
    if not shares.own_pods and not shares.named_shares:
        return builder.not_covered(_NOT_HELD, "", uuid)
    share_texts = (f"{pod} (share {number})" for pod, _, number in sorted(shares.named_shares))
    return builder.passed(f"its series name {', '.join(share_texts)}", uuid)


def _holding(pods: Set[str]) -> str:
    return f"{_join_names(pods)} {'holds' if len(pods) == 1 else 'hold'}"


def _join_names(pods: Set[str]) -> str:
    return ", ".join(sorted(pods)) or "no pod"


def _exported(device: Device, evidence: Evidence) -> set[str]:
    """The pods that the exporter itself names for it now; with "" where it names none."""
    return {
        pod
        for answer in evidence.metrics.exporters
        for reading in answer.readings
        if reading.key == device.key
        for pod in (reading.pod, *reading.pods)
    }


def _named_before_the_next_sample(device: Device, evidence: Evidence, exported: Set[str]) -> str:
    """Why the pods are known to be in Prometheus' next sample; "" where they are not known to be.

    The exporter names them already, and what the exporter names Prometheus keeps: it has stored the
    name of an earlier verification's pod with this GPU, and its configuration is the same since.

    + exported: pods that the exporter names, which hold it
    """
    stored = evidence.earlier_names.get(device.key) if device.key else None
    if stored is None:
        return ""
    when = datetime.fromtimestamp(stored, UTC)
    return (
        f"the exporter names {', '.join(sorted(exported))}, which holds it; Prometheus stored such "
        f"a name at {when:%Y-%m-%dT%H:%M:%SZ}, and its configuration is the same since"
    )


def _idle_findings(
    host: Host, evidence: Evidence, other_pods: set[str], builder: FindingBuilder
) -> list[Finding]:
    """Judge what series named before our pods ran: only pods that held a GPU then."""
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
