"""Verifies a cluster: collects the evidence in order, waits for metrics, cleans up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.news import News
from gpuboot.cluster.objects import Node, read_nodes
from gpuboot.cluster.pods import Pod, read_holders
from gpuboot.config.settings import Settings
from gpuboot.config.settings.alerting import Severity
from gpuboot.monitoring.stack_objects import ExpectedObjects, ObservedObjects
from gpuboot.telemetry.collectors import requested_fields
from gpuboot.verify.alert_path import AlertDelivery
from gpuboot.verify.checks import proof_chain
from gpuboot.verify.collector import MetricsCollector
from gpuboot.verify.control_plane import ControlPlane
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import VERIFY_PREFIX, Evidence, Reading
from gpuboot.verify.findings import Finding
from gpuboot.verify.heartbeat import Heartbeats
from gpuboot.verify.isolation_probe import IsolationProbe
from gpuboot.verify.metrics_wait import is_hopeless, settle_s, wait_for_metrics
from gpuboot.verify.service_probe import ServiceProbe
from gpuboot.verify.session import Session
from gpuboot.verify.workload import Progress, Workload
from gpuboot.verify.workload_pods import PodPlan, plan_pods, replicas

_POLL_S = 1.0
_AT_ONCE = 8
# What is configured by a mounted ConfigMap or Secret: the kubelet takes a minute to renew it.
_MOUNTED_CONFIG_LINKS = {"rules", "alertmanager"}
_MOUNT_UPDATE_S = 120.0


@dataclass(frozen=True)
class VerificationResult:
    """The evidence, the findings, and the versions that the cluster runs.

    + required_links: node -> the links that each of its GPUs has to pass before it is proven
    """

    evidence: Evidence
    findings: tuple[Finding, ...]
    required_links: Mapping[str, tuple[str, ...]]
    versions: dict[str, str] = field(default_factory=dict)


def verify(
    cluster: Cluster,
    names: Sequence[str],
    read_hosts: Callable[[], Sequence[Host]],
    settings: Settings,
    progress: Progress,
    expected_objects: Callable[[], ExpectedObjects | None] = lambda: None,
    control_planes: Callable[[], Sequence[ControlPlane]] = tuple,
    test_alert: Severity | None = None,
) -> VerificationResult:
    """Verify every GPU of these hosts, from the PCI bus to Prometheus.

    + names: of the GPU nodes
    + read_hosts: what their operating systems say; called while pods start
    + progress: takes lines of progress
    + expected_objects: what the settings add to the charts' objects; likewise. None: not checked
    + control_planes: what these nodes say; likewise
    + test_alert: severity of a test alert to send to its receiver

    Takes only free GPUs, and removes what it made however it ends. At the level `quick` it starts
    no pod, and does not wait for verifications that do. Raises `ClusterError` when the API server
    does not answer.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        runner = _Runner(cluster, pool, tuple(names), settings, progress)
        return runner.run(_Inputs(read_hosts, expected_objects, control_planes, test_alert))


@dataclass(frozen=True)
class _Inputs:
    """What is found out while pods start, as `verify` takes it."""

    read_hosts: Callable[[], Sequence[Host]]
    expected_objects: Callable[[], ExpectedObjects | None]
    control_planes: Callable[[], Sequence[ControlPlane]]
    test_alert: Severity | None


class _Runner:
    def __init__(
        self,
        cluster: Cluster,
        pool: ThreadPoolExecutor,
        names: tuple[str, ...],
        settings: Settings,
        progress: Progress,
    ) -> None:
        self._cluster = cluster
        self._pool = pool
        self._names = names
        self._settings = settings
        self._progress = progress
        self._collector = MetricsCollector(cluster, settings)
        self._heartbeats = Heartbeats(cluster)
        self._session = Session(cluster, progress, settings.verify.timeout_s)
        self._workload = Workload(self._session, settings, progress, self._heartbeats)
        self._service_probe = ServiceProbe(cluster, self._session, settings)
        self._isolation_probe = IsolationProbe(self._session, settings)
        self._evidence = Evidence(hosts=(), nodes={}, requested_fields=requested_fields(settings))
        self._durations: dict[str, float] = {}

    def run(self, inputs: _Inputs) -> VerificationResult:
        try:
            nodes = self._collect(inputs)
        finally:
            with self._timed("cleanup"):
                self._session.close()
        evidence = replace(self._evidence, durations=dict(self._durations))
        findings = tuple(proof_chain.evaluate(evidence, self._settings))
        required_links = proof_chain.required_links(evidence, self._settings)
        return VerificationResult(evidence, findings, required_links, self._versions(nodes))

    def _collect(self, inputs: _Inputs) -> dict[str, Node]:
        """All the evidence; the cluster's nodes."""
        names = self._names if self._settings.verify.level != "quick" else ()  # which get pods
        with self._timed("read cluster"):
            blocked = self._session.begin(self._settings.verify.timeout_s) if names else ""
            earlier = self._pool.submit(self._collector.earlier_names)
            reading = self._pool.submit(self._read_nodes)
            address = self._pool.submit(self._service_probe.read_address)
            gpu_pods = read_holders(self._cluster)
            idle = self._idle_series(gpu_pods) if names and not blocked else None
            nodes = reading.result()
            address.result()
        started = time.monotonic()
        plan = plan_pods(names, nodes, gpu_pods)
        if blocked:
            plan = PodPlan({}, {**dict.fromkeys(names, blocked), **plan.skipped_nodes})
        self._evidence = replace(
            self._evidence,
            nodes=nodes,
            gpu_pods=gpu_pods,
            idle_series=idle,
            skipped_nodes=plan.skipped_nodes,
        )
        with self._timed("workload"):
            self._hold_gpus(plan, nodes, inputs)
        self._evidence = replace(self._evidence, earlier_names=earlier.result())
        with self._timed("metrics"):
            self._wait_for_metrics(started)
        return nodes

    def _hold_gpus(self, plan: PodPlan, nodes: dict[str, Node], inputs: _Inputs) -> None:
        """The pods; and what is read while they start."""
        delivery = self._test_alert(inputs.test_alert)
        script = self._service_probe.script()
        carriers = self._workload.start(plan, nodes, script)
        chosen_nodes = {name: nodes[name] for name in plan.pods}
        self._service_probe.start(chosen_nodes, carriers)
        exporters = self._pool.submit(self._collector.exporters)
        objects = self._pool.submit(self._objects, inputs.expected_objects)
        answers = self._pool.submit(self._collector.answers)
        hosts = self._pool.submit(inputs.read_hosts)
        self._isolation_probe.start(chosen_nodes, hosts.result())
        results = self._workload.wait()
        services = self._service_probe.wait(self._workload.lost_nodes)
        expected, observed, error = objects.result()
        self._evidence = replace(
            self._evidence,
            hosts=tuple(self._as_shared(host, nodes) for host in hosts.result()),
            control_planes=tuple(inputs.control_planes()),
            exporters_before=exporters.result(),
            expected_objects=expected,
            observed_objects=observed,
            objects_error=error,
            workload_results=tuple(results),
            service_probes=services,
            isolation_results=self._isolation_probe.wait(self._workload.lost_nodes),
            test_alert=delivery.result() if delivery else None,
            answers=answers.result(),
            nodes=self._with_kubelet_errors(nodes, self._workload.lost_nodes),
        )

    def _as_shared(self, host: Host, nodes: Mapping[str, Node]) -> Host:
        """The host; where GPUs are shared by a device plugin of the site's, as its node says."""
        if self._settings.gpu_operator.enabled or host.node not in nodes:
            return host
        return replace(host, shared_now=replicas(nodes[host.node].labels))

    def _test_alert(self, severity: Severity | None) -> Future[AlertDelivery] | None:
        """Begins to send a test alert, where somebody asked for one."""
        if severity is None or not self._settings.monitoring.enabled:
            return None
        return self._pool.submit(self._collector.test_alert, severity)

    def _read_nodes(self) -> dict[str, Node]:
        nodes = read_nodes(self._cluster)
        ready = [name for name in self._names if name in nodes and nodes[name].ready]
        silent_nodes = self._heartbeats.silent_nodes(ready, self._progress)
        return self._with_kubelet_errors(nodes, silent_nodes)

    @staticmethod
    def _with_kubelet_errors(nodes: dict[str, Node], reasons: Mapping[str, str]) -> dict[str, Node]:
        return {
            name: replace(node, kubelet_error=reasons.get(name, node.kubelet_error))
            for name, node in nodes.items()
        }

    def _idle_series(self, gpu_pods: tuple[Pod, ...]) -> tuple[Reading, ...] | None:
        """What metrics say before we hold anything.

        A pod that ended a moment ago is named until the next sample, so wait for that. Where
        GPUs are taken and given back all the time, by another verification, nothing is learnt
        from the names in series; nor from those of one that has ended.
        """
        keys = {pod.key for pod in gpu_pods}
        until = time.monotonic() + settle_s(self._settings)
        errors: dict[str, str] = {}
        news = News(self._progress)
        while True:
            idle = self._collector.series(errors)
            named_pods = {reading.pod for reading in idle or () if reading.pod}
            stale_pods = sorted(
                name for name in named_pods - keys if not name.startswith(VERIFY_PREFIX)
            )
            if not stale_pods or time.monotonic() > until:
                return idle
            news(f"waiting until GPU series no longer name {', '.join(stale_pods)}")
            time.sleep(_POLL_S)

    def _objects(
        self, expected_objects: Callable[[], ExpectedObjects | None]
    ) -> tuple[ExpectedObjects | None, ObservedObjects | None, str]:
        """The objects that gpuboot adds to the charts' own: expected, found, or why not found."""
        expected = expected_objects()
        if expected is None:
            return None, None, ""
        try:
            return expected, self._collector.observed_objects(), ""
        except (ClusterError, KeyError) as error:
            return expected, None, str(error)

    def _wait_for_metrics(self, started: float) -> None:
        def probe() -> list[Finding]:
            metrics = self._collector.metrics(host.node for host in self._evidence.hosts)
            self._evidence = replace(
                self._evidence, metrics=metrics, before_age_s=time.monotonic() - started
            )
            return proof_chain.metrics_findings(self._evidence, self._settings)

        wait_for_metrics(
            probe,
            self._timeout,
            self._progress,
            lambda finding: is_hopeless(finding, self._evidence.metrics),
        )

    def _timeout(self, open_: Sequence[Finding]) -> float:
        settle = settle_s(self._settings)
        if any(item.link in _MOUNTED_CONFIG_LINKS for item in open_):
            return max(settle, min(_MOUNT_UPDATE_S, self._settings.verify.timeout_s))
        return settle

    def _versions(self, nodes: dict[str, Node]) -> dict[str, str]:
        """What the cluster runs, by name; several versions of one thing are all named."""
        versions: dict[str, set[str]] = {}
        for node in nodes.values():
            for name, version in node.versions.items():
                versions.setdefault(name, set()).add(version)
        for host in self._evidence.hosts:
            versions.setdefault("driver", set()).add(host.driver_loaded)
            versions.setdefault("driver module", set()).add(host.driver_text)
        return {name: ", ".join(sorted(values - {""})) for name, values in versions.items()}

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._durations[name] = round(time.monotonic() - started, 3)


def simulated(hosts: Sequence[Host]) -> tuple[str, ...]:
    """What says of itself that it is simulated; empty on real hardware."""
    texts = [host.driver_text for host in hosts] + [g.name for h in hosts for g in h.gpus]
    return tuple(dict.fromkeys(text for text in texts if "simulat" in text.lower()))
