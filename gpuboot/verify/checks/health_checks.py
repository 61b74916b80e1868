"""The link `health`: nothing that DCGM or the driver keeps of a GPU calls for repair or cooling.

A GPU may compute, and still be one that is to be replaced. What took place once, such as the XID of
a program, or what is a trend, such as corrected errors, is for alerts and not for a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from gpuboot.hosts import health_watches
from gpuboot.hosts.dcgm_engine import CHECKS, RESULTS
from gpuboot.hosts.health_watches import HEAT_AND_POWER, Card
from gpuboot.verify.checks.limits import Limits
from gpuboot.verify.dcgm_results import FAILS
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence, ExporterScrape, HealthValue, Metrics
from gpuboot.verify.findings import Finding, FindingBuilder

Action = Literal["reset", "replace", "cool", "power", "diagnosis"]
_HW_THERMAL, _POWER_BRAKE = 0x40, 0x80  # nvml.h: nvmlClocksEventReason…


@dataclass(frozen=True)
class Sign:
    """A value of the exporter that tells of a fault.

    + metric: its name
    + bad: whether a value does
    + message: what it means; `{value}` is filled in
    + action: what the GPU needs
    """

    metric: str
    bad: Callable[[float], bool]
    message: str
    action: Action


def _is(number: float) -> Callable[[float], bool]:
    return lambda value: value == number


def _over(number: float) -> Callable[[float], bool]:
    return lambda value: value > number


def _has(bit: int) -> Callable[[float], bool]:
    return lambda value: bool(int(value) & bit)


# Numbers and their sources are those of the alerts on the same fields (gpuboot/monitoring/rules).
SIGNS: Sequence[Sign] = (
    Sign("DCGM_FI_DEV_ROW_REMAP_FAILURE", _is(1), "a memory row could not be remapped", "replace"),
    Sign("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", _is(1), "its memory is unrepairable", "replace"),
    Sign("DCGM_FI_DEV_THRESHOLD_SRM", _is(1), "too many SRAM errors", "replace"),
    Sign(
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        _over(0),
        "uncorrected memory errors since its last reset: {value:g}",
        "reset",
    ),
    Sign("DCGM_FI_DEV_ROW_REMAP_PENDING", _is(1), "a row remap waits for a reset", "reset"),
    Sign(
        "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
        lambda value: value not in (0, 5),  # 5: of the IMEX domain, which spans machines
        "the driver asks for recovery action {value:g} (1 reset, 2 reboot, 3 drain peer-to-peer, "
        "4 drain and reset, 6 or 7 reboot)",
        "reset",
    ),
    Sign(
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", _has(_HW_THERMAL), "it is slowed down for heat", "cool"
    ),
    Sign(
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        _has(_POWER_BRAKE),
        "it is slowed down by the power brake",
        "power",
    ),
)
WATCHES = "DCGM_EXP_GPU_HEALTH_STATUS"
METRICS = frozenset({WATCHES, *(sign.metric for sign in SIGNS)})
_REPAIRS = frozenset({"reset", "reboot", "replace", "drain"})  # `gpu_action` of critical alerts


@dataclass(frozen=True)
class Result:
    """What one of DCGM's health watches says of a GPU that is not "well".

    + meaning: critical, warning or info, by the table; unknown: a failure that the table lacks
    """

    meaning: health_watches.Severity | Literal["unknown"]
    message: str


def evaluate(host: Host, evidence: Evidence, limits: Limits) -> list[Finding]:
    """What the exporter of a node, a host engine and critical alerts say of its GPUs' health.

    Nothing where the exporter does not answer, or has no such value by the site's own list; but
    what a host engine fails is told all the same.
    """
    builder = FindingBuilder("health", "nothing calls for a repair", host.node)
    answer = _answer(host, evidence)
    scrape = answer if answer is not None and _has_values(answer, evidence) else None
    findings = [
        _gpu_finding(gpu.uuid, host, scrape, evidence.metrics, limits, builder)
        for gpu in host.working
        if gpu.uuid
    ]
    by_host_alone = answer is not None and limits.dcgm_on_hosts
    return [item for item in findings if scrape or by_host_alone or item.status == "fail"]


def without(links: Iterable[str], host: Host, evidence: Evidence, limits: Limits) -> list[str]:
    """A chain's links without this one, where nothing tells of health.

    That is where the site's own list of fields has no such value, and no host engine is asked.
    """
    answer = None if limits.dcgm_on_hosts else _answer(host, evidence)
    silent = answer is not None and answer.names and not _has_values(answer, evidence)
    return [link for link in links if not (silent and link == "health")]


def _has_values(answer: ExporterScrape, evidence: Evidence) -> bool:
    """Whether an exporter tells of health, or should by the list of its fields."""
    requested = evidence.requested_fields
    return bool(METRICS & (answer.names | (requested.names if requested else frozenset())))


def _answer(host: Host, evidence: Evidence) -> ExporterScrape | None:
    """What the node's exporter said; None where there is no answer, or more than one."""
    answers = [answer for answer in evidence.metrics.exporters if answer.node == host.node]
    return answers[0] if len(answers) == 1 and not answers[0].error else None


def _gpu_finding(
    uuid: str,
    host: Host,
    answer: ExporterScrape | None,
    metrics: Metrics,
    limits: Limits,
    builder: FindingBuilder,
) -> Finding:
    """+ answer: None where the exporter tells nothing of health"""
    values = [value for value in answer.health if value.uuid == uuid] if answer else []
    watches = _watches(host, uuid, values, limits)
    critical = [
        alert
        for alert in metrics.alerts or ()
        if alert.gpu_uuid == uuid and alert.severity == "critical" and alert.action in _REPAIRS
    ]
    faults = [*_signs(values), *_failing(watches), *_diagnosed(host, uuid, limits)]
    if (faults or critical) and (values or limits.dcgm_on_hosts):
        messages = [text for text, _ in faults]
        messages += [f"alert {alert.name} fires" for alert in critical]
        actions = [action for _, action in faults]
        actions = actions or ["replace" if "replace" in {a.action for a in critical} else "reset"]
        detail = "; ".join(dict.fromkeys(messages))
        return builder.failed(detail, _remedy(actions[0], uuid, limits), uuid)
    if answer and not values:
        remedy = f"{limits.remedies.exporter_restart}, and read its log"
        return builder.unknown("the exporter has no value that tells of faults", remedy, uuid)
    if missing := _missing(host, uuid, metrics, limits):
        return builder.unknown(*missing, uuid)
    if unknown := _joined_messages(watches, "unknown"):
        return builder.unknown(unknown, _UNKNOWN_REMEDY, uuid)
    counted = f"{len({value.metric for value in values})} values, " if values else ""
    also = "; DCGM's host engine finds nothing" if limits.dcgm_on_hosts and not watches else ""
    evidence = _joined_messages(watches, "warning", "info")
    return builder.passed(
        f"{counted}all well{also}" + (f"; DCGM says: {evidence}" if evidence else ""), uuid
    )


_UNKNOWN_REMEDY = (
    "gpuboot does not know this result of DCGM: `dcgmi health -c -j` where dcgmi is installed, and "
    "NVRM's lines in the kernel log, tell more"
)


def _signs(values: Iterable[HealthValue]) -> list[tuple[str, Action]]:
    """What the exporter's fields tell of faults, and what that calls for."""
    return [
        (sign.message.format(value=value.value), sign.action)
        for sign in SIGNS
        for value in values
        if value.metric == sign.metric and sign.bad(value.value)
    ]


def _watches(host: Host, uuid: str, values: Iterable[HealthValue], limits: Limits) -> list[Result]:
    """What DCGM's health watches say of a GPU, by the exporter and by a host engine."""
    model = next((gpu.name for gpu in host.working if gpu.uuid == uuid), "")
    card = Card(model, other_gpus=len(host.working) - 1)
    entries = [
        (
            value.watch,
            value.code,
            value.value,
            f"DCGM's health watch {value.watch} ({value.code}) {{}}",
        )
        for value in values
        if value.metric == WATCHES and value.value > 0
    ]
    entries += [
        (
            entry.subject,
            entry.code,
            entry.level,
            f"DCGM's host engine {{}} {entry.subject}: {entry.text}",
        )
        for answer in (host.dcgm if limits.dcgm_on_hosts else ())
        if answer.check == "health" and not answer.is_stale
        for entry in answer.of(uuid)
        if entry.level > 0
    ]
    return [_result(card, *entry) for entry in entries]


def _result(card: Card, watch: str, code: str, level: float, template: str) -> Result:
    """+ template: the place for the verb is `{}`"""
    fails = level >= health_watches.FAILS
    meaning = health_watches.meaning(watch, code, card)
    message = template.replace("{}", "fails" if fails else "warns", 1)
    if meaning is None:
        is_unlisted = fails and watch not in HEAT_AND_POWER
        return Result(
            "unknown" if is_unlisted else "warning", f"{message}, which gpuboot does not know"
        )
    severity = meaning.severity(level)
    cause = f": {meaning.cause}" if severity == "info" and meaning.cause else ""
    return Result(severity, f"{message}{cause}")


def _failing(watches: Iterable[Result]) -> list[tuple[str, Action]]:
    return [(result.message, "reset") for result in watches if result.meaning == "critical"]


def _joined_messages(watches: Iterable[Result], *meanings: str) -> str:
    return "; ".join(dict.fromkeys(item.message for item in watches if item.meaning in meanings))


def _diagnosed(host: Host, uuid: str, limits: Limits) -> list[tuple[str, Action]]:
    """What the host engine's diagnosis fails of a GPU, and what that calls for."""
    return [
        (f"DCGM's diagnosis fails {verdict.subject}: {verdict.text}", "diagnosis")
        for answer in (host.dcgm if limits.dcgm_on_hosts else ())
        if answer.check == "diag" and not answer.is_stale
        for verdict in answer.of(uuid)
        if verdict.level >= FAILS
    ]


def _missing(host: Host, uuid: str, metrics: Metrics, limits: Limits) -> tuple[str, str] | None:
    """What is not known of a GPU by alerts and the host engine, and how to learn it."""
    if (error := metrics.errors.get("alerts")) and "prometheus" not in metrics.errors:
        return f"which alerts fire could not be read: {error}", limits.remedies.prometheus
    for check in CHECKS if limits.dcgm_on_hosts else ():
        unit = f"gpuboot-dcgm-{check}"
        remedy = f"on the node: `systemctl start {unit}`, then `journalctl -n 20 -u {unit}`"
        answer = next((candidate for candidate in host.dcgm if candidate.check == check), None)
        if answer is None:
            return f"DCGM's host engine has not been asked (dcgmi {check})", remedy
        if answer.is_stale:
            hours = answer.age_s / 3600
            if hours < 0:
                detail = f"DCGM's last answer is of {-hours:.1f} h from now (dcgmi {check})"
                return f"{detail}: the node's clock was set back", remedy
            return f"DCGM's host engine answered {hours:.1f} h ago (dcgmi {check})", remedy
        if check == "health" and not answer.of(uuid):
            return "DCGM's host engine does not know this GPU", (
                "on the node: `dcgmi discovery -l`, `systemctl restart nvidia-dcgm`"
            )
    return None


def _remedy(action: str, uuid: str, limits: Limits) -> str:
    remedies = limits.remedies
    if action == "replace":
        return (
            f"{remedies.drain}, leave it cordoned and have the GPU replaced: NVIDIA takes this as "
            "reason enough; attach the output of `nvidia-bug-report.sh`"
        )
    if action == "cool":
        return (
            "look at the machine's cooling: `nvidia-smi -q -d TEMPERATURE,PERFORMANCE`, `ipmitool "
            "sdr`; all GPUs of the node hot: room or fans; one alone: dust or a blocked path"
        )
    if action == "power":
        return "look at the machine's power supplies and cables: `ipmitool sdr type 'Power Supply'`"
    diagnosis = f"read what DCGM says of it: `jq . {RESULTS}/diag.json` on the node; then "
    return (
        (diagnosis if action == "diagnosis" else "")
        + f"{remedies.drain}, stop what holds the GPU ({remedies.gpu_clients}) and run `nvidia-smi "
        f"--gpu-reset -i {uuid}`, or reboot the node; then {remedies.exporter_restart}, since DCGM "
        "keeps what it saw until its engine restarts; if it comes back, have the GPU replaced"
    )
