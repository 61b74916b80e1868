"""Asks exporters, Prometheus, Alertmanager and Grafana, all behind the API server's proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.cluster_answers import WORKLOADS
from gpuboot.cluster.manifests import DIGEST, OWNER, OWNER_LABEL, PATHS
from gpuboot.cluster.objects import parse_claim
from gpuboot.cluster.pods import Pod, parse_pod
from gpuboot.config.settings import Settings
from gpuboot.config.settings.alerting import Severity
from gpuboot.monitoring import network_policies
from gpuboot.monitoring.charts.monitoring_values import GRAFANA_NAME
from gpuboot.monitoring.stack_objects import ObservedObjects
from gpuboot.verify import alert_probe
from gpuboot.verify.alert_path import AlertDelivery
from gpuboot.verify.blocked import EXPORTER_LABELS, Blocked, Source
from gpuboot.verify.blocked import read as read_blocked
from gpuboot.verify.checks.one_file import Answer
from gpuboot.verify.checks.one_file_checks import CLUSTER_CHECKS
from gpuboot.verify.concurrently import concurrently
from gpuboot.verify.devices import SeriesKey
from gpuboot.verify.evidence import VERIFY_PREFIX, ExporterScrape, Metrics, Reading
from gpuboot.verify.prometheus import (
    Prometheus,
    PrometheusError,
    gpu_readings,
    health_values,
    parse_exposition,
)

T = TypeVar("T")
EXPORTER_PORT = 9400
# The Services that prometheus-operator itself makes, whatever the release is called.
PROMETHEUS = ("prometheus-operated", 9090)
ALERTMANAGER = ("alertmanager-operated", 9093)
_DASHBOARDS = {"labelSelector": "grafana_dashboard=1"}


class MetricsCollector:
    """Reads the state of all metrics of one cluster. Missing answers become `Metrics.errors`."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._settings = settings
        namespace = settings.monitoring.namespace
        self._namespace = namespace
        self._prometheus = Prometheus(cluster, cluster.service(namespace, *PROMETHEUS))
        self._alert_path = alert_probe.AlertPathReader(
            cluster, namespace, cluster.service(namespace, *ALERTMANAGER), self._prometheus
        )

    def metrics(self, nodes: Iterable[str] = ()) -> Metrics:
        """The state of all metrics at this moment. + nodes: that should have an exporter"""
        errors: dict[str, str] = {}
        values: dict[str, Any] = {}

        def collect(name: str) -> None:
            subject, question = questions[name]
            values[name] = try_question(errors, subject, question)

        questions = self._questions(errors)
        concurrently(partial(collect, name) for name in questions)
        values["exporters"] = values["exporters"] or ()
        if "alertmanager_ready" in values:
            values["alertmanager_ready"] = values["alertmanager_ready"] is not None
        is_silent = not {"prometheus", "alertmanager", "grafana"}.isdisjoint(errors)
        if is_silent or {*nodes} - {scrape.node for scrape in values["exporters"]}:
            # it only saves waiting, and tells more of what is open anyway
            values["blocked"] = try_question({}, "blocked", self._blocked) or {}
        return Metrics(errors=errors, **values)

    def _blocked(self) -> dict[Source, Blocked]:
        monitoring = self._settings.monitoring
        grafana = GRAFANA_NAME if monitoring.grafana else ""
        return read_blocked(
            self._cluster,
            self._namespace if monitoring.enabled else "",
            grafana if monitoring.enabled else "",
        )

    def _questions(self, errors: dict[str, str]) -> dict[str, tuple[str, Callable[[], Any]]]:
        """Field of `Metrics` -> where its error goes, and what asks for it."""
        exporters = {"exporters": ("exporters", self.exporters)}
        if not self._settings.monitoring.enabled:
            return exporters
        base = self._cluster.service(self._namespace, *ALERTMANAGER)
        grafana = {"dashboards": ("dashboards", lambda: self._dashboards(errors))}
        return {
            **exporters,
            "series": ("prometheus", self._prometheus.gpu_series),
            "targets": ("prometheus", self._prometheus.targets),
            "rules": ("prometheus", self._prometheus.rules),
            "alertmanagers": ("prometheus", self._prometheus.alertmanagers),
            "alerts": ("alerts", self._prometheus.alerts),
            "alert_path": ("alert path", self._alert_path.read),
            "alertmanager_ready": ("alertmanager", lambda: self._cluster.get(f"{base}/-/ready")),
            "alertmanager_config": (
                "alertmanager config",
                lambda: str(self._cluster.json(f"{base}/api/v2/status")["config"]["original"]),
            ),
            **(grafana if self._settings.monitoring.grafana else {}),
        }

    def test_alert(self, severity: Severity) -> AlertDelivery:
        """Send a test alert to the receiver of its severity; what became of it."""
        base = self._cluster.service(self._namespace, *ALERTMANAGER)
        settings = self._settings
        return alert_probe.deliver_test_alert(
            self._cluster, base, settings.alertmanager, severity, settings.cluster.name
        )

    def observed_objects(self) -> ObservedObjects:
        """Our objects and the stack's volumes. Raises `ClusterError`."""
        label = {"labelSelector": f"{OWNER_LABEL}={OWNER}"}
        claims = f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims"
        *listings, stored = concurrently(
            [
                *(partial(self._cluster.json, path, label) for path in PATHS.values()),
                partial(self._cluster.json, claims),
            ]
        )
        objects = {
            (kind, item["metadata"]["namespace"], item["metadata"]["name"]): (
                item["metadata"].get("annotations", {}).get(DIGEST, "")
            )
            for kind, listing in zip(PATHS, listings, strict=True)
            for item in listing["items"]
        }
        stored_claims = tuple(map(parse_claim, stored["items"]))
        return ObservedObjects(objects, stored_claims, self._enforcement())

    def _enforcement(self) -> str:
        if not self._settings.monitoring.network_policies:
            return ""
        items = self._cluster.json(WORKLOADS["DaemonSet"])["items"]
        return network_policies.enforcement(item["metadata"]["name"] for item in items)

    def answers(self) -> dict[str, Answer]:
        """What the API answers to each check of `checks.of_cluster`, by its link."""
        answers = concurrently(partial(self._answer, check.path) for check in CLUSTER_CHECKS)
        return {
            check.link.name: answer for check, answer in zip(CLUSTER_CHECKS, answers, strict=True)
        }

    def _answer(self, path: str) -> Answer:
        try:
            return Answer(self._cluster.get(path))
        except ClusterError as error:
            return Answer(error=str(error))

    def series(self, errors: dict[str, str]) -> tuple[Reading, ...] | None:
        """Prometheus' GPU series; None, with the reason in `errors`, without an answer."""
        if not self._settings.monitoring.enabled:
            return None
        return try_question(errors, "prometheus", self._prometheus.gpu_series)

    def earlier_names(self) -> dict[SeriesKey, float]:
        """When series last named a verification's pod; nothing where nobody can say.

        No error: it only saves waiting for Prometheus' next samples.
        """
        if not self._settings.monitoring.enabled:
            return {}
        names = partial(self._prometheus.earlier_names, f"{VERIFY_PREFIX}.+")
        return try_question({}, "prometheus", names) or {}

    def exporters(self) -> tuple[ExporterScrape, ...]:
        """The answer of every exporter pod. Raises `ClusterError` when pods cannot be listed."""
        selectors = [{"labelSelector": labels} for labels in EXPORTER_LABELS]
        listings = concurrently(
            partial(self._cluster.json, "/api/v1/pods", selector) for selector in selectors
        )
        pods = {
            pod.key: pod
            for answer in listings
            for pod in map(parse_pod, answer["items"])
            if not pod.going  # another follows it
        }
        return tuple(concurrently(partial(self._scrape, pod) for pod in pods.values()))

    def _scrape(self, pod: Pod) -> ExporterScrape:
        if pod.phase != "Running":
            return ExporterScrape(node=pod.node, pod=pod.name, error=f"the pod is {pod.phase}")
        try:
            return parse_scrape(pod.node, pod.name, self._page(pod), pod.stamp or None)
        except (ClusterError, ValueError) as error:
            return ExporterScrape(node=pod.node, pod=pod.name, error=str(error))

    def _page(self, pod: Pod) -> str:
        path = self._cluster.pod(pod.namespace, pod.name, EXPORTER_PORT)
        return self._cluster.get(f"{path}/metrics").decode()

    def _dashboards(self, errors: dict[str, str]) -> int | None:
        """How many dashboards draw GPU metrics; `errors` tells when Grafana does not answer."""
        health = f"{self._cluster.service(self._namespace, GRAFANA_NAME, 80)}/api/health"
        try_question(errors, "grafana", lambda: self._cluster.get(health))
        maps = try_question(
            errors, "dashboards", lambda: self._cluster.json("/api/v1/configmaps", _DASHBOARDS)
        )
        if maps is None:
            return None
        return sum(
            any("DCGM_FI_" in text for text in item.get("data", {}).values())
            for item in maps["items"]
        )


def try_question(errors: dict[str, str], subject: str, question: Callable[[], T]) -> T | None:
    """The answer; None, with the reason in `errors`, where there is none."""
    try:
        return question()
    except (ClusterError, PrometheusError, ValueError) as error:
        errors[subject] = str(error)
    except (LookupError, TypeError, AttributeError) as error:
        errors[subject] = f"an answer of another shape: {error!r}"
    return None


def parse_scrape(node: str, pod: str, text: str, stamp: str | None = None) -> ExporterScrape:
    """What an exporter's page of metrics says. Raises ValueError for a page that is none.

    + stamp: see `ExporterScrape`
    """
    samples = list(parse_exposition(text))
    names = frozenset(sample.name for sample in samples)
    return ExporterScrape(
        node=node,
        pod=pod,
        readings=gpu_readings(samples, node),
        error="",
        names=names,
        health=health_values(samples),
        fields_digest=stamp,
    )
