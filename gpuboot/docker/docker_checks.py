"""The chain of a Docker host's GPUs: the cluster's, without what only Kubernetes has."""

from dataclasses import replace

from gpuboot.config.settings import Settings
from gpuboot.docker.docker_remedies import DOCKER_HOSTS
from gpuboot.verify import levels
from gpuboot.verify.checks import (
    health_checks,
    host_checks,
    layout_checks,
    links,
    metrics_checks,
    monitoring_checks,
    operating_system,
    pod_remedies,
    proof_chain,
)
from gpuboot.verify.checks.limits import Limits
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence, WorkloadResult
from gpuboot.verify.findings import NOT_REACHED, Finding, FindingBuilder
from gpuboot.verify.gaps import gaps

LINKS = tuple(link.name for link in links.TABLE if link.docker and link.subject != "cluster")
RELOAD = "reload"  # key of `Metrics.errors`: who runs with an older configuration than its file


def evaluate(evidence: Evidence, settings: Settings) -> list[Finding]:
    """Every link of every GPU of every host, then those of the monitoring host."""
    findings: list[Finding] = []
    links = required_links(evidence, settings)
    for host in evidence.hosts:
        of_host = levels.within(_host(host, evidence, settings), settings.verify.level)
        findings += of_host
        findings += gaps(host, of_host, links[host.node], NOT_REACHED, proof_chain.FIX_FIRST)
    if not evidence.hosts:
        remedy = "put hosts with GPUs into the group gpu_hosts"
        findings.append(FindingBuilder("pci", "GPU hosts").not_covered("there is no host", remedy))
    return proof_chain.ordered([*findings, *_monitor(evidence, settings)])


def required_links(evidence: Evidence, settings: Settings) -> dict[str, tuple[str, ...]]:
    """Host -> the links that each of its GPUs has to pass before it is proven."""
    without, bounds = levels.left_out(settings.verify.level), _limits(settings)
    links = [link for link in LINKS if link not in without]
    return {
        host.node: tuple(
            host_checks.without(health_checks.without(links, host, evidence, bounds), host)
        )
        for host in evidence.hosts
    }


def metrics_findings(evidence: Evidence, settings: Settings) -> list[Finding]:
    """The findings that come from exporters and Prometheus: what a wait for metrics is for."""
    findings = [item for host in evidence.hosts for item in _metrics(host, evidence, settings)]
    return [*findings, *_monitor(evidence, settings)]


def _host(host: Host, evidence: Evidence, settings: Settings) -> list[Finding]:
    if host.error:
        return operating_system.evaluate(host, "default")
    lower = [
        *operating_system.pci(host),
        *operating_system.driver(host, DOCKER_HOSTS),
        *operating_system.nvidia_smi(host, DOCKER_HOSTS),
    ]
    return [
        *lower,
        *host_checks.evaluate(host),
        *runtime(host),
        *workload(host, evidence),
        *_metrics(host, evidence, settings),
        *health_checks.evaluate(host, evidence, _limits(settings)),
    ]


def _metrics(host: Host, evidence: Evidence, settings: Settings) -> list[Finding]:
    limits = _limits(settings)
    return [
        *metrics_checks.exporter(host, evidence, limits),
        *metrics_checks.prometheus(host, evidence, limits),
    ]


def _limits(settings: Settings) -> Limits:
    return replace(proof_chain.limits(settings), remedies=DOCKER_HOSTS)


def _monitor(evidence: Evidence, settings: Settings) -> list[Finding]:
    findings = monitoring_checks.evaluate(
        evidence.metrics, settings.monitoring.grafana, DOCKER_HOSTS
    )
    if error := evidence.metrics.errors.get(RELOAD):
        builder = FindingBuilder("rules", "configuration in force")
        findings.append(builder.failed(error, DOCKER_HOSTS.rules_missing))
    return findings


def runtime(host: Host) -> list[Finding]:
    """Judge whether dockerd has NVIDIA's runtime, and there are the instances of the settings."""
    if not host.working:
        return []
    builder = FindingBuilder("runtime", "Docker's default runtime", host.node)
    remedy = f"run {DOCKER_HOSTS.deploy}, which writes dockerd's configuration again"
    if not host.runtime_handlers:
        return [builder.unknown("dockerd did not answer", "see `journalctl -u docker` there")]
    if "nvidia" not in host.runtime_handlers:
        return [builder.failed("dockerd has no runtime `nvidia`", remedy)]
    if host.default_runtime != "nvidia":
        return [builder.failed(f"dockerd's default runtime is {host.default_runtime}", remedy)]
    if problem := layout_checks.other_layout(host, DOCKER_HOSTS):
        return [builder.failed(*problem)]
    passed = [builder.passed("default runtime nvidia", device.uuid) for device in host.devices]
    return passed + _without_instances(host, builder)


def _without_instances(host: Host, builder: FindingBuilder) -> list[Finding]:
    remedy = (
        "name a layout in sharing (docs/sharing.md), create instances (`nvidia-smi mig -cgi … "
        "-C`), or switch MIG off (`nvidia-smi -mig 0`)"
    )
    cause = "MIG is on and it has no instances, so no container can get it"
    return [builder.not_covered(cause, remedy, gpu.uuid) for gpu in host.unpartitioned]


def workload(host: Host, evidence: Evidence) -> list[Finding]:
    """Judge whether vectorAdd passed in a container on every device, and each saw no other."""
    builder = FindingBuilder(
        "workload", "vectorAdd by UUID", host.node, evidence.durations.get("workload", 0.0)
    )
    results = {
        result.pod: result for result in evidence.workload_results if result.node == host.node
    }
    uuids = sorted(device.uuid for device in host.devices)
    return [
        _workload_finding(uuid, results.get(uuid), builder) for uuid in uuids
    ] + _without_instances(host, builder)


def _workload_finding(uuid: str, result: WorkloadResult | None, builder: FindingBuilder) -> Finding:
    if result is None:
        return builder.unknown("no container was started for it", "verify again", uuid)
    if result.unschedulable:
        return builder.not_covered(result.error, "verify again when it is free", uuid)
    if result.error or not result.passed:
        cause = result.error or "its output does not say Test PASSED"
        by_hand = (
            f"`docker run --rm --gpus device={uuid} …` on the host, and `journalctl -u docker`"
        )
        remedy = pod_remedies.remedy(cause, uuid, DOCKER_HOSTS) or by_hand
        return builder.failed(cause, remedy, uuid)
    if result.uuids != (uuid,):
        remedy = (
            "containers see GPUs they were not given: see `nvidia-ctk cdi list` and daemon.json"
        )
        saw = ", ".join(result.uuids) or "none"
        return builder.failed(f"its container saw: {saw}", remedy, uuid)
    return builder.passed(f"Test PASSED in {result.seconds:.1f} s", uuid)
