"""Proves a cluster: gathers the evidence in order, waits where waiting can help, cleans up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import seconds
from gpuboot.kubernetes.api import Cluster, ClusterError
from gpuboot.telemetry.collectors import asked
from gpuboot.verify import kube_objects
from gpuboot.verify.checks import chain
from gpuboot.verify.checks.model import Finding
from gpuboot.verify.collector import Gatherer
from gpuboot.verify.evidence import Evidence, GpuPod, Host, KubeNode, WantedStack
from gpuboot.verify.heartbeat import Heartbeats
from gpuboot.verify.service_probe import Services
from gpuboot.verify.session import Session
from gpuboot.verify.workload import TOLERATED, Plan, Say, Workload, plan

_POLL_S = 2.0
_LEAST_SETTLE_S = 45.0
_TELL_EVERY_S = 10.0
# What is configured by a mounted ConfigMap or Secret: the kubelet takes a minute to renew it.
_CONFIGURED = {"rules", "alertmanager"}
_CONFIGURE_S = 120.0


@dataclass(frozen=True)
class Proof:
    """What came out: the evidence, the findings, and what the cluster runs."""

    evidence: Evidence
    findings: tuple[Finding, ...]
    versions: dict[str, str] = field(default_factory=dict)


def settle_s(settings: Settings) -> float:
    """How long metrics may take to tell what is true now: a few sampling and scrape periods."""
    exporter = settings.exporter
    periods = 3 * (seconds(exporter.scrape_interval) + exporter.interval_ms / 1000)
    other = 2 * seconds(settings.monitoring.scrape_interval)
    return min(float(settings.verify.timeout_s), max(_LEAST_SETTLE_S, periods, other))


def prove(
    cluster: Cluster,
    hosts: Sequence[Host],
    settings: Settings,
    say: Say,
    wanted: WantedStack | None = None,
) -> Proof:
    """Judge every GPU of these hosts, from the bus to Prometheus.

    + hosts: what the GPU nodes' operating systems said
    + say: takes lines of progress
    + wanted: what is to stand beside the charts' own; None: nobody looks

    Takes only free GPUs, and removes what it made however it ends. Raises `ClusterError` when
    the API server does not answer.
    """
    return _Prover(cluster, tuple(hosts), settings, say, wanted).run()


class _Prover:
    def __init__(
        self,
        cluster: Cluster,
        hosts: tuple[Host, ...],
        settings: Settings,
        say: Say,
        wanted: WantedStack | None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._say = say
        self._gatherer = Gatherer(cluster, settings)
        self._beats = Heartbeats(cluster)
        self._session = Session(cluster, say)
        self._workload = Workload(self._session, settings, say, self._beats)
        self._services = Services(cluster, self._session, settings)
        self._seen = Evidence(hosts, {}, wanted=wanted, asked=asked(settings))
        self._spent: dict[str, float] = {}

    def run(self) -> Proof:
        try:
            nodes = self._prove()
        finally:
            with self._timed("cleanup"):
                self._session.close()
        seen = replace(self._seen, seconds=dict(self._spent))
        findings = tuple(chain.judge(seen, self._settings))
        return Proof(seen, findings, self._versions(nodes))

    def _prove(self) -> dict[str, KubeNode]:
        """All the evidence; the cluster's nodes."""
        names = [host.node for host in self._seen.hosts]
        with self._timed("before"):
            blocked = self._session.begin(self._settings.verify.timeout_s) if names else ""
            nodes, taints = self._nodes()
            holders = self._holders()
            before = self._before(holders, bool(blocked))
        started = time.monotonic()
        self._seen = replace(before, nodes=nodes, holders=holders)
        chosen = plan(names, nodes, holders, taints)
        if blocked:
            chosen = Plan({}, {**dict.fromkeys(names, blocked), **chosen.skipped})
        self._seen = replace(self._seen, skipped=chosen.skipped)
        self._run_pods(chosen, nodes, started)
        return nodes

    def _run_pods(self, chosen: Plan, nodes: dict[str, KubeNode], started: float) -> None:
        """The pods, and the metrics while they hold their GPUs."""
        with self._timed("workload"):
            trials = self._workload.start(chosen, nodes)
            self._services.start(chosen.pods, nodes)
            trials = self._workload.wait(trials)
            services = self._services.wait(self._workload.given_up)
            nodes = self._silent(nodes, self._workload.given_up)
            self._seen = replace(self._seen, trials=tuple(trials), services=services, nodes=nodes)
        with self._timed("metrics"):
            self._watch(started)

    def _nodes(self) -> tuple[dict[str, KubeNode], dict[str, str]]:
        items = self._cluster.json("/api/v1/nodes")["items"]
        nodes = {item["metadata"]["name"]: kube_objects.node(item) for item in items}
        taints = {
            item["metadata"]["name"]: kube_objects.foreign_taint(item, TOLERATED) for item in items
        }
        ready = [host.node for host in self._seen.hosts if host.node in nodes]
        ready = [name for name in ready if nodes[name].ready]
        return self._silent(nodes, self._beats.silent(ready, self._say)), taints

    @staticmethod
    def _silent(nodes: dict[str, KubeNode], why: Mapping[str, str]) -> dict[str, KubeNode]:
        return {
            name: replace(node, silent=why.get(name, node.silent)) for name, node in nodes.items()
        }

    def _holders(self) -> tuple[GpuPod, ...]:
        return kube_objects.gpu_pods(self._cluster.json("/api/v1/pods")["items"])

    def _before(self, holders: tuple[GpuPod, ...], shared: bool) -> Evidence:
        """What metrics say before we hold anything.

        A pod that ended a moment ago is named until the next sample, so wait for that. Where
        GPUs are taken and given back all the time, by another verification, nothing is learnt
        from the names in series: `shared`.
        """
        if shared:
            return replace(self._seen, before=self._gatherer.exporters(), **self._stack())
        keys = {pod.key for pod in holders}
        until = time.monotonic() + settle_s(self._settings)
        errors: dict[str, str] = {}
        while True:
            idle = self._gatherer.series(errors)
            wrong = sorted({r.pod for r in idle or () if r.pod and r.pod not in keys})
            if not wrong or time.monotonic() > until:
                break
            self._say(f"waiting until GPU series no longer name {', '.join(wrong)}")
            time.sleep(_POLL_S)
        return replace(self._seen, idle=idle, before=self._gatherer.exporters(), **self._stack())

    def _stack(self) -> dict[str, Any]:
        """What stands beside the charts' own, for the evidence."""
        if self._seen.wanted is None:
            return {}
        try:
            return {"stack": self._gatherer.stack()}
        except (ClusterError, KeyError) as error:
            return {"stack_error": str(error)}

    def _watch(self, started: float) -> None:
        def look() -> list[Finding]:
            metrics = self._gatherer.metrics()
            self._seen = replace(self._seen, metrics=metrics, before_s=time.monotonic() - started)
            return chain.metrics_findings(self._seen, self._settings)

        watch(look, self._patience, self._say)

    def _patience(self, open_: Sequence[Finding]) -> float:
        settle = settle_s(self._settings)
        if any(item.link in _CONFIGURED for item in open_):
            return max(settle, min(_CONFIGURE_S, self._settings.verify.timeout_s))
        return settle

    def _versions(self, nodes: dict[str, KubeNode]) -> dict[str, str]:
        """What the cluster runs, by name; several versions of one thing are all named."""
        found: dict[str, set[str]] = {}
        for node in nodes.values():
            for name, version in node.versions.items():
                found.setdefault(name, set()).add(version)
        for host in self._seen.hosts:
            found.setdefault("driver", set()).add(host.loaded)
            found.setdefault("driver text", set()).add(host.driver_text)
        return {name: ", ".join(sorted(values - {""})) for name, values in found.items()}

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self._spent[name] = round(time.monotonic() - begun, 3)


def watch(
    look: Callable[[], list[Finding]], patience: Callable[[Sequence[Finding]], float], say: Say
) -> None:
    """Look at metrics until all is as it should be, or waiting can no longer help.

    + look: reads them anew, and judges
    + patience: how many seconds after the start such open findings are still waited for; once
      granted, they stay granted
    """
    begun = until = time.monotonic()
    told = 0.0
    while True:
        found = look()
        open_ = [item for item in found if item.status in {"fail", "unknown"}]
        now = time.monotonic()
        until = max(until, begun + patience(open_))
        if not open_ or now > until:
            return
        if now - told > _TELL_EVERY_S:
            say(_waiting(open_, len(found), now - begun, until - now))
            told = now
        time.sleep(_POLL_S)


def _waiting(open_: Sequence[Finding], total: int, spent: float, left: float) -> str:
    first = open_[0]
    where = f"{first.node} " if first.node else ""
    return (
        f"metrics: {total - len(open_)} of {total} as they should be, {spent:.0f} s, at most "
        f"{left:.0f} s more; waiting for {where}{first.link}: {first.detail}"
    )


def simulated(hosts: Sequence[Host]) -> tuple[str, ...]:
    """What says of itself that it is simulated; empty on real hardware."""
    texts = [host.driver_text for host in hosts] + [g.name for h in hosts for g in h.gpus]
    return tuple(dict.fromkeys(text for text in texts if "simulat" in text.lower()))
