"""The proof of one node's GPUs, before pods come back to it: what can be known on a node alone.

What exporters and Prometheus say of it comes with the verification at the end of a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuboot.cluster.api import Cluster
from gpuboot.cluster.news import News
from gpuboot.cluster.objects import parse_node
from gpuboot.cluster.pods import read_holders
from gpuboot.config.settings import Settings
from gpuboot.verify.checks import kubernetes_checks, operating_system, proof_chain
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import Finding, FindingBuilder
from gpuboot.verify.heartbeat import Heartbeats
from gpuboot.verify.session import Session
from gpuboot.verify.workload import Progress, Workload
from gpuboot.verify.workload_pods import plan_pods, replicas

_POLL_S = 3.0
_NVIDIA = "nvidia.com/"


def prove(
    cluster: Cluster,
    name: str,
    read_host: Callable[[], Host],
    settings: Settings,
    progress: Progress,
    shared_now: bool = False,
) -> list[Finding]:
    """Judge one node's links from the PCI bus to vectorAdd; the node may be cordoned.

    + name: the node's in Kubernetes
    + read_host: what its operating system says, now
    + progress: takes lines of progress
    + shared_now: pods may share GPUs as the node's labels say, not as the settings do

    Waits until the node offers its GPUs. A node to which no device plugin has come yet is judged by
    its operating system alone. Raises `ClusterError` when the API server does not answer.
    """
    snapshot = _until_offered(cluster, name, read_host, settings, progress, shared_now)
    if unproven(snapshot.findings) or not snapshot.offers or not settings.gpu_operator.enabled:
        return snapshot.findings
    return [*snapshot.findings, *_try_gpus(cluster, snapshot, settings, progress)]


def unproven(findings: Sequence[Finding]) -> list[Finding]:
    """The findings by which a node's GPUs are not proven."""
    return [item for item in findings if item.status in ("fail", "unknown")]


def untried(findings: Sequence[Finding]) -> str:
    """Why GPUs of a node without failures are not proven; "" where vectorAdd passed on each."""
    workload_findings = [item for item in findings if item.link == "workload"]
    if not workload_findings:
        return "vectorAdd was not tried: the node offers no GPU"
    return next((cause([item]) for item in workload_findings if item.status != "pass"), "")


def cause(findings: Sequence[Finding]) -> str:
    """The first of some findings in words, with the number of the others."""
    first, *further = findings
    which = f" {first.gpu_uuid}" if first.gpu_uuid else ""
    suffix = f" (and {len(further)} more)" if further else ""
    return f"{first.check}{which}: {first.detail}{suffix}"


def problem(findings: Sequence[Finding], lost_gpus: str) -> tuple[str, str] | None:
    """Cause and remedy where a node is not proven. + lost_gpus: GPUs that it had before"""
    if failures := unproven(findings):
        return cause(failures), failures[0].remedy
    return (lost_gpus, "look for XIDs in the kernel log, and at the machine") if lost_gpus else None


class _Snapshot:
    """The state of a host and its node at one moment."""

    def __init__(
        self, cluster: Cluster, name: str, host: Host, settings: Settings, shared_now: bool
    ) -> None:
        self.node = parse_node(cluster.json(f"/api/v1/nodes/{name}"))
        if shared_now:
            host = replace(host, shared_now=replicas(self.node.labels))
        self.host = host
        self.offers = any(key.startswith(_NVIDIA) for key in self.node.capacity)
        self.findings = operating_system.evaluate(host, settings.runtime.mode)
        if self.offers and settings.gpu_operator.enabled and not host.error:
            evidence = Evidence(hosts=(host,), nodes={name: self.node})
            limits = proof_chain.limits(settings, host)
            self.findings += kubernetes_checks.allocatable(
                host, evidence, limits.slices, limits.strategy
            )


def _until_offered(
    cluster: Cluster,
    name: str,
    read_host: Callable[[], Host],
    settings: Settings,
    progress: Progress,
    shared_now: bool,
) -> _Snapshot:
    """Wait until the node offers its GPUs: after a boot drivers and device plugin take a while."""
    until = time.monotonic() + settings.verify.timeout_s
    news = News(progress)
    while True:
        snapshot = _Snapshot(cluster, name, read_host(), settings, shared_now)
        failures = unproven(snapshot.findings)
        if not failures or time.monotonic() > until:
            return snapshot
        news(f"{name}: waiting: {failures[0].detail}")
        time.sleep(_POLL_S)


def _try_gpus(
    cluster: Cluster, snapshot: _Snapshot, settings: Settings, progress: Progress
) -> list[Finding]:
    """Run vectorAdd on each GPU that no pod holds."""
    name, timeout_s = snapshot.node.name, settings.verify.timeout_s
    session = Session(cluster, progress, timeout_s)
    try:
        if blocked := session.begin(timeout_s):
            builder = FindingBuilder("workload", "vectorAdd by UUID", name)
            return [builder.unknown(blocked, "run again when it has ended")]
        gpu_pods = read_holders(cluster, {"fieldSelector": f"spec.nodeName={name}"})
        # only this node is asked for, and the scheduler is not: what closes it is no matter
        open_node = replace(snapshot.node, cordoned=False, taints=())
        plan = plan_pods([name], {name: open_node}, gpu_pods)
        workload = Workload(session, settings, progress, Heartbeats(cluster))
        workload.start(plan, {name: replace(snapshot.node, cordoned=True)})
        results = workload.wait()
    finally:
        session.close()
    evidence = Evidence(
        hosts=(snapshot.host,),
        nodes={name: snapshot.node},
        gpu_pods=gpu_pods,
        workload_results=tuple(results),
    )
    limits = proof_chain.limits(settings, snapshot.host)
    return kubernetes_checks.workload(snapshot.host, evidence, limits.slices, limits.strategy)
