"""Verifies a cluster: collects the evidence in order, waits for metrics, cleans up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import seconds
from gpuboot.kubernetes.api import Cluster, ClusterError
from gpuboot.telemetry.collectors import requested_fields
from gpuboot.verify import kube_objects
from gpuboot.verify.checks import chain
from gpuboot.verify.collector import MetricsCollector
from gpuboot.verify.evidence import Evidence, ExpectedObjects, GpuPod, Host, KubeNode
from gpuboot.verify.findings import Finding
from gpuboot.verify.heartbeat import Heartbeats
from gpuboot.verify.service_probe import ServiceProbe
from gpuboot.verify.session import Session
from gpuboot.verify.workload import TOLERATED_TAINTS, PodPlan, Progress, Workload, plan_pods

_POLL_S = 2.0
_MIN_SETTLE_S = 45.0
_PROGRESS_EVERY_S = 10.0
# What is configured by a mounted ConfigMap or Secret: the kubelet takes a minute to renew it.
_MOUNTED_CONFIG_LINKS = {"rules", "alertmanager"}
_MOUNT_UPDATE_S = 120.0


@dataclass(frozen=True)
class VerificationResult:
    """The evidence, the findings, and the versions that the cluster runs."""

    evidence: Evidence
    findings: tuple[Finding, ...]
    versions: dict[str, str] = field(default_factory=dict)


def settle_s(settings: Settings) -> float:
    """How long metrics may take to tell what is true now: a few sampling and scrape periods."""
    exporter = settings.exporter
    periods = 3 * (seconds(exporter.scrape_interval) + exporter.interval_ms / 1000)
    other = 2 * seconds(settings.monitoring.scrape_interval)
    return min(float(settings.verify.timeout_s), max(_MIN_SETTLE_S, periods, other))


def verify(
    cluster: Cluster,
    hosts: Sequence[Host],
    settings: Settings,
    progress: Progress,
    expected_objects: ExpectedObjects | None = None,
) -> VerificationResult:
    """Verify every GPU of these hosts, from the PCI bus to Prometheus.

    + hosts: what the GPU nodes' operating systems said
    + progress: takes lines of progress
    + expected_objects: what the settings add to the charts' objects; None: not checked

    Takes only free GPUs, and removes what it made however it ends. Raises `ClusterError` when
    the API server does not answer.
    """
    return _Runner(cluster, tuple(hosts), settings, progress, expected_objects).run()


class _Runner:
    def __init__(
        self,
        cluster: Cluster,
        hosts: tuple[Host, ...],
        settings: Settings,
        progress: Progress,
        expected_objects: ExpectedObjects | None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._progress = progress
        self._collector = MetricsCollector(cluster, settings)
        self._heartbeats = Heartbeats(cluster)
        self._session = Session(cluster, progress)
        self._workload = Workload(self._session, settings, progress, self._heartbeats)
        self._service_probe = ServiceProbe(cluster, self._session, settings)
        self._evidence = Evidence(
            hosts=hosts,
            nodes={},
            expected_objects=expected_objects,
            requested_fields=requested_fields(settings),
        )
        self._durations: dict[str, float] = {}

    def run(self) -> VerificationResult:
        try:
            nodes = self._collect()
        finally:
            with self._timed("cleanup"):
                self._session.close()
        evidence = replace(self._evidence, durations=dict(self._durations))
        findings = tuple(chain.evaluate(evidence, self._settings))
        return VerificationResult(evidence, findings, self._versions(nodes))

    def _collect(self) -> dict[str, KubeNode]:
        """All the evidence; the cluster's nodes."""
        names = [host.node for host in self._evidence.hosts]
        with self._timed("before"):
            blocked = self._session.begin(self._settings.verify.timeout_s) if names else ""
            nodes, taints = self._read_nodes()
            gpu_pods = self._read_gpu_pods()
            before = self._collect_before(gpu_pods, bool(blocked))
        started = time.monotonic()
        self._evidence = replace(before, nodes=nodes, gpu_pods=gpu_pods)
        chosen = plan_pods(names, nodes, gpu_pods, taints)
        if blocked:
            chosen = PodPlan({}, {**dict.fromkeys(names, blocked), **chosen.skipped_nodes})
        self._evidence = replace(self._evidence, skipped_nodes=chosen.skipped_nodes)
        self._hold_gpus(chosen, nodes, started)
        return nodes

    def _hold_gpus(self, chosen: PodPlan, nodes: dict[str, KubeNode], started: float) -> None:
        """The pods, and the metrics while they hold their GPUs."""
        with self._timed("workload"):
            results = self._workload.start(chosen, nodes)
            self._service_probe.start(chosen.pods, nodes)
            results = self._workload.wait(results)
            services = self._service_probe.wait(self._workload.lost_nodes)
            nodes = self._with_kubelet_errors(nodes, self._workload.lost_nodes)
            self._evidence = replace(
                self._evidence,
                workload_results=tuple(results),
                service_probes=services,
                nodes=nodes,
            )
        with self._timed("metrics"):
            self._wait_for_metrics(started)

    def _read_nodes(self) -> tuple[dict[str, KubeNode], dict[str, str]]:
        items = self._cluster.json("/api/v1/nodes")["items"]
        nodes = {item["metadata"]["name"]: kube_objects.parse_node(item) for item in items}
        taints = {
            item["metadata"]["name"]: kube_objects.untolerated_taint(item, TOLERATED_TAINTS)
            for item in items
        }
        ready = [host.node for host in self._evidence.hosts if host.node in nodes]
        ready = [name for name in ready if nodes[name].ready]
        return self._with_kubelet_errors(
            nodes, self._heartbeats.silent_nodes(ready, self._progress)
        ), taints

    @staticmethod
    def _with_kubelet_errors(
        nodes: dict[str, KubeNode], why: Mapping[str, str]
    ) -> dict[str, KubeNode]:
        return {
            name: replace(node, kubelet_error=why.get(name, node.kubelet_error))
            for name, node in nodes.items()
        }

    def _read_gpu_pods(self) -> tuple[GpuPod, ...]:
        return kube_objects.gpu_pods(self._cluster.json("/api/v1/pods")["items"])

    def _collect_before(self, gpu_pods: tuple[GpuPod, ...], shared: bool) -> Evidence:
        """What metrics say before we hold anything.

        A pod that ended a moment ago is named until the next sample, so wait for that. Where
        GPUs are taken and given back all the time, by another verification, nothing is learnt
        from the names in series: `shared`.
        """
        if shared:
            return self._with_objects(
                replace(self._evidence, exporters_before=self._collector.exporters())
            )
        keys = {pod.key for pod in gpu_pods}
        until = time.monotonic() + settle_s(self._settings)
        errors: dict[str, str] = {}
        while True:
            idle = self._collector.series(errors)
            wrong = sorted({r.pod for r in idle or () if r.pod and r.pod not in keys})
            if not wrong or time.monotonic() > until:
                break
            self._progress(f"waiting until GPU series no longer name {', '.join(wrong)}")
            time.sleep(_POLL_S)
        return self._with_objects(
            replace(self._evidence, idle_series=idle, exporters_before=self._collector.exporters())
        )

    def _with_objects(self, evidence: Evidence) -> Evidence:
        """The evidence with the objects that gpuboot adds to the charts' own, where expected."""
        if evidence.expected_objects is None:
            return evidence
        try:
            return replace(evidence, observed_objects=self._collector.observed_objects())
        except (ClusterError, KeyError) as error:
            return replace(evidence, objects_error=str(error))

    def _wait_for_metrics(self, started: float) -> None:
        def probe() -> list[Finding]:
            metrics = self._collector.metrics()
            self._evidence = replace(
                self._evidence, metrics=metrics, before_age_s=time.monotonic() - started
            )
            return chain.metrics_findings(self._evidence, self._settings)

        wait_for_metrics(probe, self._timeout, self._progress)

    def _timeout(self, open_: Sequence[Finding]) -> float:
        settle = settle_s(self._settings)
        if any(item.link in _MOUNTED_CONFIG_LINKS for item in open_):
            return max(settle, min(_MOUNT_UPDATE_S, self._settings.verify.timeout_s))
        return settle

    def _versions(self, nodes: dict[str, KubeNode]) -> dict[str, str]:
        """What the cluster runs, by name; several versions of one thing are all named."""
        versions: dict[str, set[str]] = {}
        for node in nodes.values():
            for name, version in node.versions.items():
                versions.setdefault(name, set()).add(version)
        for host in self._evidence.hosts:
            versions.setdefault("driver", set()).add(host.driver_loaded)
            versions.setdefault("driver text", set()).add(host.driver_text)
        return {name: ", ".join(sorted(values - {""})) for name, values in versions.items()}

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self._durations[name] = round(time.monotonic() - begun, 3)


def wait_for_metrics(
    probe: Callable[[], list[Finding]],
    timeout: Callable[[Sequence[Finding]], float],
    progress: Progress,
) -> None:
    """Read metrics until every check passes, or the time is up.

    + probe: reads them again and evaluates them
    + timeout: how many seconds after the start such open findings are still waited for; once
      granted, they stay granted
    """
    begun = until = time.monotonic()
    last_reported = 0.0
    while True:
        findings = probe()
        open_ = [item for item in findings if item.status in {"fail", "unknown"}]
        now = time.monotonic()
        until = max(until, begun + timeout(open_))
        if not open_ or now > until:
            return
        if now - last_reported > _PROGRESS_EVERY_S:
            progress(_waiting(open_, len(findings), now - begun, until - now))
            last_reported = now
        time.sleep(_POLL_S)


def _waiting(open_: Sequence[Finding], total: int, spent: float, left: float) -> str:
    first = open_[0]
    where = f"{first.node} " if first.node else ""
    return (
        f"metrics: {total - len(open_)} of {total} checks passed after {spent:.0f} s, at most "
        f"{left:.0f} s more; waiting for {where}{first.link}: {first.detail}"
    )


def simulated(hosts: Sequence[Host]) -> tuple[str, ...]:
    """What says of itself that it is simulated; empty on real hardware."""
    texts = [host.driver_text for host in hosts] + [g.name for h in hosts for g in h.gpus]
    return tuple(dict.fromkeys(text for text in texts if "simulat" in text.lower()))
