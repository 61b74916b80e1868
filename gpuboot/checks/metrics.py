"""Links of the metrics: the exporter, Prometheus, and who a series says holds the GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuboot.checks.evidence import Evidence, ExporterAnswer, Host, Reading
from gpuboot.checks.model import Finding, Scribe

EXPORTER_REMEDY = (
    "look at the dcgm-exporter pod of this node (`kubectl get pods -A -o wide | grep dcgm`) and "
    "its log; a node label nvidia.com/gpu.deploy.dcgm-exporter other than true keeps it away"
)
HOTTEST = 125.0  # °C; GPUs shut themselves down before
STILL_AFTER = 3  # sampling periods after which an energy counter that stands still is dead


def judge(host: Host, seen: Evidence, settings: Limits) -> list[Finding]:
    """The exporter's link of one node, and Prometheus' two where monitoring is on."""
    findings = exporter(host, seen, settings.interval_s)
    if settings.monitoring:
        findings += prometheus(host, seen, settings.max_age_s)
        findings += attribution(host, seen, settings.slices)
    return findings


class Limits:
    """What the settings say about metrics. Unit: seconds."""

    def __init__(
        self, monitoring: bool, max_age_s: float, interval_s: float, slices: int = 1
    ) -> None:
        self.monitoring = monitoring
        self.max_age_s = max_age_s
        self.interval_s = interval_s
        self.slices = slices


def exporter(host: Host, seen: Evidence, interval_s: float) -> list[Finding]:
    """The node's exporter reports exactly the GPUs of nvidia-smi, with values that can be."""
    seconds = seen.seconds.get("metrics", 0.0)
    scribe = Scribe("exporter", "dcgm-exporter series = nvidia-smi", host.node, seconds)
    if not host.uuids:
        return []
    answers = [answer for answer in seen.metrics.exporters if answer.node == host.node]
    if error := seen.metrics.errors.get("exporters"):
        return [scribe.unknown(error, "verify again")]
    if not answers:
        return [scribe.failed("no dcgm-exporter pod runs on this node", EXPORTER_REMEDY)]
    if len(answers) > 1:
        pods = ", ".join(answer.pod for answer in answers)
        remedy = "run one dcgm-exporter: the GPU Operator's or the chart's (exporter.kind)"
        return [scribe.failed(f"{len(answers)} dcgm-exporters report this node: {pods}", remedy)]
    answer = answers[0]
    if answer.error:
        return [scribe.failed(f"{answer.pod}: {answer.error}", EXPORTER_REMEDY)]
    readings = {reading.uuid: reading for reading in answer.readings}
    strangers = sorted(readings.keys() - {gpu.uuid for gpu in host.gpus})
    remedy = "the exporter watches other GPUs than nvidia-smi lists: restart its pod"
    return [
        _value(
            uuid,
            readings.get(uuid),
            _earlier(seen.before, host.node, uuid),
            seen,
            interval_s,
            scribe,
        )
        for uuid in sorted(host.uuids)
    ] + [
        scribe.failed(f"it reports {uuid}, which the node lacks", remedy, uuid)
        for uuid in strangers
    ]


def _value(
    uuid: str,
    reading: Reading | None,
    earlier: Reading | None,
    seen: Evidence,
    interval_s: float,
    scribe: Scribe,
) -> Finding:
    if reading is None:
        return scribe.failed("the exporter has no series of this GPU", EXPORTER_REMEDY, uuid)
    if wrong := _insane(reading):
        remedy = "DCGM answers without values: restart the exporter's pod, then see nvidia-smi -q"
        return scribe.failed(wrong, remedy, uuid)
    still = (
        earlier is not None
        and reading.energy is not None
        and reading.energy == earlier.energy
        and seen.before_s > STILL_AFTER * interval_s
    )
    if still:
        remedy = "DCGM no longer samples: restart the exporter's pod"
        return scribe.failed(f"values stand still for {seen.before_s:.0f} s", remedy, uuid)
    return scribe.passed(
        f"{reading.temperature:g} °C, {reading.power:g} W, {reading.memory:g} MiB", uuid
    )


def _insane(reading: Reading) -> str:
    """What cannot be true of a GPU that is on; "" when all is well."""
    if reading.temperature is None or not 0 < reading.temperature <= HOTTEST:
        return f"temperature is {reading.temperature} °C"
    if reading.power is None or reading.power <= 0:
        return f"power draw is {reading.power} W"
    if reading.memory is None or reading.memory <= 0:
        return f"device memory is {reading.memory} MiB"
    return ""


def _earlier(before: Iterable[ExporterAnswer], node: str, uuid: str) -> Reading | None:
    readings = (r for answer in before if answer.node == node for r in answer.readings)
    return next((reading for reading in readings if reading.uuid == uuid), None)


def prometheus(host: Host, seen: Evidence, max_age_s: float) -> list[Finding]:
    """The exporter's target is up, and each GPU has one fresh series with the right node."""
    scribe = Scribe("prometheus", "Prometheus series = nvidia-smi", host.node)
    if not host.uuids:
        return []
    series = seen.metrics.series
    if series is None or seen.metrics.targets is None:
        why = seen.metrics.errors.get("prometheus", "Prometheus gave no answer")
        return [scribe.unknown(why, "see the Prometheus pod of the monitoring namespace")]
    targets = [t for t in seen.metrics.targets if "dcgm" in t.job and t.node == host.node]
    if not targets:
        return [
            scribe.failed(
                "no dcgm-exporter scrape target has this node",
                "see the ServiceMonitor of dcgm-exporter and its `node` relabeling; "
                + EXPORTER_REMEDY,
            )
        ]
    if len(targets) > 1:
        remedy = "keep one ServiceMonitor for dcgm-exporter"
        return [scribe.failed(f"{len(targets)} scrape targets of dcgm-exporter", remedy)]
    if targets[0].health != "up":
        detail = f"scrape target is {targets[0].health}: {targets[0].error}"
        return [scribe.failed(detail, EXPORTER_REMEDY)]
    return [_series(uuid, series, host.node, max_age_s, scribe) for uuid in sorted(host.uuids)]


def _series(
    uuid: str, series: Sequence[Reading], node: str, max_age_s: float, scribe: Scribe
) -> Finding:
    found = [reading for reading in series if reading.uuid == uuid]
    if not found:
        remedy = "compare the exporter's /metrics with Prometheus' metricRelabelings"
        return scribe.failed("no series of this GPU in Prometheus", remedy, uuid)
    wrong = sorted({reading.node for reading in found} - {node})
    if wrong:
        remedy = "relabel `node` from __meta_kubernetes_pod_node_name in the ServiceMonitor"
        return scribe.failed(f"its series say node {wrong[0] or '(none)'}", remedy, uuid)
    if len(found) > 1 and len({reading.pod for reading in found}) < len(found):
        remedy = "keep one ServiceMonitor for dcgm-exporter"
        return scribe.failed(f"{len(found)} series of the same metric", remedy, uuid)
    age = min((r.age_s for r in found if r.age_s is not None), default=None)
    if age is None:
        return scribe.unknown("Prometheus does not say how old the sample is", "", uuid)
    if age > max_age_s:
        remedy = "see why its target is not scraped any more (Prometheus, Status > Targets)"
        return scribe.failed(f"last sample is {age:.0f} s old, allowed {max_age_s:g}", remedy, uuid)
    return scribe.passed(f"target up, sample {age:.1f} s old, node {node}", uuid)


def attribution(host: Host, seen: Evidence, slices: int) -> list[Finding]:
    """A GPU's series name the pod that holds it; a GPU nobody holds names no pod."""
    scribe = Scribe("attribution", "pod labels = pods", host.node)
    series = seen.metrics.series
    if series is None:
        return []
    if slices > 1 or any(gpu.mig for gpu in host.gpus):
        reason = "GPUs are shared: a series names at most one of a GPU's pods"
        remedy = "exporter.arguments = ['--kubernetes-virtual-gpus'] makes one series per share"
        return [scribe.not_covered(reason, remedy, uuid) for uuid in sorted(host.uuids)]
    ours = {trial.uuids[0]: trial.key for trial in seen.trials if len(trial.uuids) == 1}
    strangers = {pod.key for pod in seen.holders if pod.node == host.node}
    findings = [
        _names(uuid, series, ours.get(uuid), strangers, scribe)
        for uuid in sorted(host.uuids)
        if any(reading.uuid == uuid for reading in series)
    ]
    return findings + _idle(host, seen, strangers, scribe)


def _names(
    uuid: str, series: Sequence[Reading], ours: str | None, strangers: set[str], scribe: Scribe
) -> Finding:
    named = {reading.pod for reading in series if reading.uuid == uuid} - {""}
    if ours is not None:
        if named == {ours}:
            return scribe.passed(f"its series name {ours}, which holds it", uuid)
        got = ", ".join(sorted(named)) or "no pod"
        return scribe.failed(
            f"{ours} holds it, its series name {got}",
            "the exporter needs DCGM_EXPORTER_KUBERNETES=true and the kubelet's pod-resources "
            "socket; the ServiceMonitor must drop the target's own pod and namespace labels",
            uuid,
        )
    if named and named <= strangers:
        return scribe.passed(f"its series name {', '.join(named)}, which holds a GPU here", uuid)
    return scribe.not_covered("no pod of ours held it, so there was nothing to name", "", uuid)


def _idle(host: Host, seen: Evidence, strangers: set[str], scribe: Scribe) -> list[Finding]:
    """Before our pods ran, only pods that held a GPU may have been named."""
    return [
        scribe.failed(
            f"its series named {reading.pod}, which held no GPU",
            "idle GPUs carry the exporter's own pod when honorLabels meets target labels: drop "
            "pod, namespace and container from the target's labels (labeldrop)",
            reading.uuid,
        )
        for reading in seen.idle or ()
        if reading.uuid in host.uuids and reading.pod and reading.pod not in strangers
    ]
