"""Verifies Docker hosts: a container on each GPU, then the metrics, until they agree with it."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from gpuboot.cluster.api import ClusterError
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.docker import docker_checks
from gpuboot.docker.compose.compose_services import host_port, local_url
from gpuboot.verify.collector import parse_scrape, try_question
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence, ExporterScrape, Metrics, WorkloadResult
from gpuboot.verify.findings import Finding
from gpuboot.verify.metrics_wait import settle_s, wait_for_metrics
from gpuboot.verify.pod_results import parse_vectoradd_log
from gpuboot.verify.prometheus import Prometheus
from gpuboot.verify.runner import VerificationResult

# What asks a URL from the monitoring host. Raises `NoAnswer`.
Fetch = Callable[[str], str]
Say = Callable[[str], None]
_RELOADED = (
    "prometheus_config_last_reload_successful == 0 "
    "or alertmanager_config_last_reload_successful == 0"
)


class NoAnswer(ClusterError):
    """A URL did not answer; the text says why."""


class MetricsCollector:
    """Reads the state of all metrics from the monitoring host.

    + fetch: fetches a URL there
    + search: fetches Grafana's list of dashboards there, which takes its password
    """

    def __init__(
        self, nodes: Sequence[Node], settings: Settings, fetch: Fetch, search: Callable[[], str]
    ) -> None:
        self._nodes = [node for node in nodes if node.gpus]
        self._settings = settings
        self._fetch = fetch
        self._search = search
        self._prometheus = Prometheus(self, local_url(settings, "prometheus"))

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """The JSON at a URL, see `gpuboot.verify.prometheus.Reader`. + path: the whole URL here"""
        return json.loads(self._fetch(f"{path}?{urlencode(query)}" if query else path))

    def exporters(self) -> tuple[ExporterScrape, ...]:
        """The answer of every exporter, as the monitoring host gets it."""
        return tuple(map(self._exporter, self._nodes))

    def _exporter(self, node: Node) -> ExporterScrape:
        port = self._settings.standalone.ports["exporter"]
        url = f"http://{host_port(node.address, port)}/metrics"
        try:
            return parse_scrape(node.name, "dcgm-exporter", self._fetch(url))
        except (NoAnswer, ValueError) as error:
            return ExporterScrape(node=node.name, pod="dcgm-exporter", error=str(error))

    def metrics(self) -> Metrics:
        """The state of all metrics at this moment."""
        errors: dict[str, str] = {}
        prometheus = self._prometheus
        ready = f"{local_url(self._settings, 'alertmanager')}/-/ready"
        old = try_question(errors, "prometheus", lambda: prometheus.query(_RELOADED))
        if old:
            names = sorted({sample.name.partition("_")[0] for sample in old})
            errors[docker_checks.RELOAD] = f"{', '.join(names)} refused its new configuration"
        return Metrics(
            exporters=self.exporters(),
            series=try_question(errors, "prometheus", prometheus.gpu_series),
            targets=try_question(errors, "prometheus", prometheus.targets),
            rules=try_question(errors, "prometheus", prometheus.rules),
            alertmanagers=try_question(errors, "prometheus", prometheus.alertmanagers),
            alertmanager_ready=try_question(errors, "alertmanager", lambda: self._fetch(ready))
            is not None,
            dashboards=self._dashboards(errors) if self._settings.monitoring.grafana else None,
            errors=errors,
            alerts=try_question(errors, "alerts", prometheus.alerts),
        )

    def _dashboards(self, errors: dict[str, str]) -> int | None:
        dashboards = try_question(errors, "grafana", lambda: json.loads(self._search()))
        if dashboards is None:
            return None
        return sum(str(item.get("uid", "")).startswith("gpu-") for item in dashboards)


def verify(
    hosts: Sequence[Host],
    settings: Settings,
    collector: MetricsCollector,
    run_workloads: Callable[[], list[WorkloadResult]],
    say: Say,
) -> VerificationResult:
    """Verify every GPU of these hosts.

    + hosts: what their operating systems and dockerd said
    + run_workloads: runs vectorAdd on all their free GPUs; what became of each
    """
    started = time.monotonic()
    evidence = Evidence(hosts=tuple(hosts), nodes={}, exporters_before=collector.exporters())
    before_at = time.monotonic()
    evidence = replace(evidence, workload_results=tuple(run_workloads()))
    durations = {"workload": round(time.monotonic() - before_at, 3)}
    watched = time.monotonic()

    def probe() -> list[Finding]:
        nonlocal evidence
        evidence = replace(
            evidence, metrics=collector.metrics(), before_age_s=time.monotonic() - before_at
        )
        return docker_checks.metrics_findings(evidence, settings)

    wait_for_metrics(probe, lambda _: settle_s(settings), say, is_hopeless=lambda _: False)
    durations["metrics"] = round(time.monotonic() - watched, 3)
    evidence = replace(evidence, durations={"before": round(before_at - started, 3), **durations})
    drivers = sorted({host.driver_loaded for host in hosts} - {""})
    texts = sorted({host.driver_text for host in hosts} - {""})
    versions = {"driver": ", ".join(drivers), "driver module": ", ".join(texts)}
    findings, required_links = (
        docker_checks.evaluate(evidence, settings),
        docker_checks.required_links(evidence, settings),
    )
    return VerificationResult(evidence, tuple(findings), required_links, versions)


def workload_result(
    node: str, uuid: str, output: str, status: int, seconds: float
) -> WorkloadResult:
    """What one container's run says.

    + output: its own and Docker's; status: exit status of `docker run`
    """
    uuids, passed = parse_vectoradd_log(output)
    tail = " / ".join(output.strip().splitlines()[-3:])
    error = "" if status == 0 else f"docker run ended with {status}: {tail}"
    return WorkloadResult(
        pod=uuid,
        namespace="docker",
        node=node,
        uuids=uuids,
        passed=passed and status == 0,
        error=error,
        seconds=seconds,
    )


def processes_by_gpu(output: str) -> dict[str, int]:
    """Processes by GPU, of `nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader`."""
    counts: dict[str, int] = {}
    for uuid in re.findall(r"^(GPU-[0-9a-f-]+),", output, re.MULTILINE):
        counts[uuid] = counts.get(uuid, 0) + 1
    return counts
