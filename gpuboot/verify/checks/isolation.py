"""The link `isolation`: a container that was given no GPU sees none, however it asks."""

from __future__ import annotations

from collections.abc import Iterable

from gpuboot.verify.checks.pod_remedies import POD_IS_GONE, unscheduled, without_answer
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence, IsolationResult
from gpuboot.verify.findings import Finding, FindingBuilder
from gpuboot.verify.isolation_probe import ANNOTATION, VOLUME

_CONFIG = "/etc/nvidia-container-runtime/config.toml"
_OPTION = (
    "run deploys/site.py, which sets `{option} = false` in {config} on {node}; where it is set, "
    "`containerd config dump` there names the runtime that starts pods, which must be "
    "/usr/bin/nvidia-container-runtime; then restart the pods that should see no GPU"
)
_BY_ANNOTATION = (
    "containerd on {node} passes annotations of pods on to NVIDIA's runtime: take "
    "`pod_annotations` for cdi.k8s.io out of the files in /etc/containerd/conf.d, and restart "
    "containerd"
)


def evaluate(host: Host, evidence: Evidence) -> list[Finding]:
    """Judge what the pod without a GPU saw on one node."""
    builder = FindingBuilder("isolation", "a pod without a GPU request sees no GPU", host.node)
    if reason := evidence.skipped_nodes.get(host.node):
        return [builder.not_covered(reason, "verify again when that is over")]
    results = [item for item in evidence.isolation_results if item.node == host.node]
    if not results:
        return [builder.not_covered("no pod tried it on this node", "verify again")]
    return [_finding(item, builder) for item in results]


def _finding(item: IsolationResult, builder: FindingBuilder) -> Finding:
    leaks = {way: paths for way, paths in item.devices.items() if paths}
    if leaks:
        devices = " ".join(sorted({path for paths in leaks.values() for path in paths}))
        detail = f"{item.pod} sees {devices} by {', '.join(leaks)}"
        return builder.failed(detail, _remedy(leaks, item.node))
    if item.unschedulable:
        return builder.not_covered(*unscheduled(item.error, item.node))
    if item.error:
        return builder.unknown(f"{item.pod}: {item.error}", without_answer(item.error))
    if not item.devices:
        return builder.unknown(f"{item.pod}: it tried no way", POD_IS_GONE)
    return builder.passed(f"no device by {', '.join(item.devices)}")


def _remedy(ways: Iterable[str], node: str) -> str:
    """The remedy for the way that explains the others: an annotation is the whole pod's."""
    if ANNOTATION in ways:
        return _BY_ANNOTATION.format(node=node)
    option = (
        "accept-nvidia-visible-devices-as-volume-mounts"
        if set(ways) == {VOLUME}
        else "accept-nvidia-visible-devices-envvar-when-unprivileged"
    )
    return _OPTION.format(option=option, config=_CONFIG, node=node)
