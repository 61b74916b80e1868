"""The chain of a Docker host's GPUs: the cluster's, without what only Kubernetes has."""

from __future__ import annotations

from dataclasses import replace

from gpuboot.config.settings import Settings
from gpuboot.verify.checks import chain, metrics, monitoring
from gpuboot.verify.checks import host as host_checks
from gpuboot.verify.checks.model import Finding, Scribe
from gpuboot.verify.evidence import Evidence, Host, Trial

LINKS = ("pci", "driver", "nvidia-smi", "runtime", "workload", "exporter", "prometheus")
DEPLOY = "deploys/standalone.py"
RELOAD = "reload"  # key of `Metrics.errors`: who runs with an older configuration than its file
# Where to look, link by link; the cluster's checks speak of pods.
_REMEDIES = {
    "exporter": "on the host: `docker compose -p gpuboot ps` and `docker compose -p gpuboot logs "
    "dcgm-exporter`; from the monitoring host its port must be reachable (firewalls)",
    "prometheus": "see Prometheus, Status > Targets; its targets are files below "
    "prometheus/targets in the project's folder on the monitoring host",
    "targets": "see the container behind it (`docker compose -p gpuboot ps`), and that the "
    "monitoring host reaches its port",
    "rules": "`docker compose -p gpuboot logs prometheus` on the monitoring host",
    "alertmanager": "`docker compose -p gpuboot logs alertmanager` on the monitoring host",
    "dashboards": "`docker compose -p gpuboot logs grafana` on the monitoring host",
}


def judge(seen: Evidence, settings: Settings) -> list[Finding]:
    """Every link of every GPU of every host, then those of the monitoring host."""
    findings: list[Finding] = []
    for host in seen.hosts:
        own = _host(host, seen, settings)
        findings += own + chain.unreached(host, own, LINKS)
    if not seen.hosts:
        remedy = "put hosts with GPUs into the group gpu_hosts"
        findings.append(Scribe("pci", "GPU hosts").not_covered("there is no host", remedy))
    return chain.ordered(map(_worded, [*findings, *_monitor(seen, settings)]))


def metrics_findings(seen: Evidence, settings: Settings) -> list[Finding]:
    """Only what comes from exporters and Prometheus: what a wait for metrics waits for."""
    found = [item for host in seen.hosts for item in _metrics(host, seen, settings)]
    return [*found, *_monitor(seen, settings)]


def _host(host: Host, seen: Evidence, settings: Settings) -> list[Finding]:
    if host.error:
        return host_checks.judge(host, "default")
    lower = [*host_checks.pci(host), *host_checks.driver(host), *host_checks.smi(host)]
    return [*lower, *runtime(host), *workload(host, seen), *_metrics(host, seen, settings)]


def _metrics(host: Host, seen: Evidence, settings: Settings) -> list[Finding]:
    limits = chain.limits(settings)
    return [
        *metrics.exporter(host, seen, limits),
        *metrics.prometheus(host, seen, limits),
    ]


def _monitor(seen: Evidence, settings: Settings) -> list[Finding]:
    found = monitoring.judge(seen.metrics, settings.standalone.grafana)
    if old := seen.metrics.errors.get(RELOAD):
        scribe = Scribe("rules", "configuration in force")
        found.append(scribe.failed(old, "see its log for what is wrong with the new one"))
    return found


def _worded(finding: Finding) -> Finding:
    if finding.status == "pass":
        return finding
    remedy = _REMEDIES.get(finding.link, finding.remedy).replace("deploys/site.py", DEPLOY)
    return replace(finding, remedy=remedy)


def runtime(host: Host) -> list[Finding]:
    """dockerd gives containers NVIDIA's runtime unless they ask for another one."""
    if not host.working:
        return []
    scribe = Scribe("runtime", "Docker's default runtime", host.node)
    remedy = f"run {DEPLOY}, which configures dockerd anew"
    if not host.handlers:
        return [scribe.unknown("dockerd did not answer", "see `journalctl -u docker` there")]
    if "nvidia" not in host.handlers:
        return [scribe.failed("dockerd has no runtime `nvidia`", remedy)]
    if host.default_runtime != "nvidia":
        return [scribe.failed(f"dockerd's default runtime is {host.default_runtime}", remedy)]
    passed = [scribe.passed("default runtime nvidia", device.uuid) for device in host.devices]
    return passed + _uncut(host, scribe)


def _uncut(host: Host, scribe: Scribe) -> list[Finding]:
    remedy = "make instances (`nvidia-smi mig -cgi … -C`), or switch MIG off (`nvidia-smi -mig 0`)"
    why = "MIG is on and no instance was made of it, so no container can get it"
    return [scribe.not_covered(why, remedy, gpu.uuid) for gpu in host.uncut]


def workload(host: Host, seen: Evidence) -> list[Finding]:
    """vectorAdd passed in a container on every GPU and MIG device; each saw its own alone."""
    scribe = Scribe("workload", "vectorAdd by UUID", host.node, seen.seconds.get("workload", 0.0))
    trials = {trial.pod: trial for trial in seen.trials if trial.node == host.node}
    uuids = sorted(device.uuid for device in host.devices)
    return [_tried(uuid, trials.get(uuid), scribe) for uuid in uuids] + _uncut(host, scribe)


def _tried(uuid: str, trial: Trial | None, scribe: Scribe) -> Finding:
    if trial is None:
        return scribe.unknown("no container was started for it", "verify again", uuid)
    if trial.unschedulable:
        return scribe.not_covered(trial.trouble, "verify again when it is free", uuid)
    if trial.trouble or not trial.passed:
        why = trial.trouble or "its output does not say Test PASSED"
        remedy = "`docker run --rm --gpus device=UUID …` on the host, and `journalctl -u docker`"
        return scribe.failed(why, remedy, uuid)
    if trial.uuids != (uuid,):
        remedy = (
            "containers see GPUs they were not given: see `nvidia-ctk cdi list` and daemon.json"
        )
        saw = ", ".join(trial.uuids) or "none"
        return scribe.failed(f"its container saw: {saw}", remedy, uuid)
    return scribe.passed(f"Test PASSED in {trial.seconds:.1f} s", uuid)
