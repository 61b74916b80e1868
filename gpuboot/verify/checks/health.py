"""The link `health`: nothing that DCGM or the driver keeps of a GPU calls for a reset, a repair or
cooling.

A GPU may compute, and still be one that is to be replaced. What took place once, such as the XID of
a program, or what is a trend, such as corrected errors, is for alerts and not for a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from gpuboot.hosts.dcgm import CHECKS, RESULTS
from gpuboot.verify.checks.limits import Limits
from gpuboot.verify.dcgm_results import FAILS
from gpuboot.verify.evidence import Evidence, ExporterScrape, HealthValue, Host
from gpuboot.verify.findings import Finding, FindingBuilder
from gpuboot.verify.firing_alerts import FiringAlert

Action = Literal["reset", "replace", "cool", "power", "diagnosis"]
_HW_THERMAL, _POWER_BRAKE = 0x40, 0x80  # nvml.h: nvmlClocksEventReason…


@dataclass(frozen=True)
class Sign:
    """A value of the exporter that tells of a fault.

    + metric: its name
    + bad: whether a value does
    + says: what it means; `{value}` and `{what}` (health watch and error) are filled in
    + action: what the GPU needs
    """

    metric: str
    bad: Callable[[float], bool]
    says: str
    action: Action


def _is(number: float) -> Callable[[float], bool]:
    return lambda value: value == number


def _over(number: float) -> Callable[[float], bool]:
    return lambda value: value > number


def _has(bit: int) -> Callable[[float], bool]:
    return lambda value: bool(int(value) & bit)


# Numbers and their sources are those of the alerts on the same fields (gpuboot/rules).
SIGNS: Sequence[Sign] = (
    Sign("DCGM_FI_DEV_ROW_REMAP_FAILURE", _is(1), "a memory row could not be remapped", "replace"),
    Sign("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", _is(1), "its memory is unrepairable", "replace"),
    Sign("DCGM_FI_DEV_THRESHOLD_SRM", _is(1), "too many SRAM errors", "replace"),
    Sign(
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        _over(0),
        "{value:g} uncorrected memory errors since its last reset",
        "reset",
    ),
    Sign("DCGM_FI_DEV_ROW_REMAP_PENDING", _is(1), "a row remap waits for a reset", "reset"),
    Sign(
        "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
        _over(0),
        "the driver asks for recovery action {value:g} (1 reset, 2 reboot, 3 drain peer-to-peer, "
        "4 drain and reset)",
        "reset",
    ),
    Sign("DCGM_EXP_GPU_HEALTH_STATUS", _is(20), "DCGM's health watch {what} fails", "reset"),
    Sign(
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        _has(_HW_THERMAL),
        "it is slowed down for heat",
        "cool",
    ),
    Sign(
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        _has(_POWER_BRAKE),
        "it is slowed down by the power brake",
        "power",
    ),
)
METRICS = frozenset(sign.metric for sign in SIGNS)
# heat and power have signs of their own: DCGM's watches of these fail for passing moments
IGNORED_WATCHES = frozenset({"THERMAL", "POWER"})
_REPAIRS = frozenset({"reset", "reboot", "replace", "drain"})  # `gpu_action` of critical alerts


def evaluate(host: Host, evidence: Evidence, limits: Limits) -> list[Finding]:
    """What the exporter of a node, a host engine and critical alerts say of its GPUs' health.

    Nothing where the exporter does not answer, or has no such value by the site's own list; but
    what a host engine fails is told all the same.
    """
    builder = FindingBuilder("health", "nothing calls for a repair", host.node)
    answer = _answer(host, evidence)
    told = answer if answer is not None and answer.names & METRICS else None
    alerts = evidence.metrics.alerts or ()
    findings = [
        _gpu_finding(gpu.uuid, host, told, alerts, limits, builder)
        for gpu in host.working
        if gpu.uuid
    ]
    by_host_alone = answer is not None and limits.dcgm_on_hosts
    return [item for item in findings if told or by_host_alone or item.status == "fail"]


def without(links: Iterable[str], host: Host, evidence: Evidence, limits: Limits) -> list[str]:
    """A chain's links without this one, where nothing tells of health.

    That is where the site's own list of fields has no such value, and no host engine is asked.
    """
    answer = _answer(host, evidence)
    silent = answer is not None and answer.names and not answer.names & METRICS
    return [
        link for link in links if not (silent and link == "health" and not limits.dcgm_on_hosts)
    ]


def _answer(host: Host, evidence: Evidence) -> ExporterScrape | None:
    """What the node's exporter said; None where there is no answer, or more than one."""
    answers = [answer for answer in evidence.metrics.exporters if answer.node == host.node]
    return answers[0] if len(answers) == 1 and not answers[0].error else None


def _gpu_finding(
    uuid: str,
    host: Host,
    answer: ExporterScrape | None,
    alerts: Iterable[FiringAlert],
    limits: Limits,
    builder: FindingBuilder,
) -> Finding:
    """+ answer: None where the exporter tells nothing of health"""
    values = [value for value in answer.health if value.uuid == uuid] if answer else []
    bad = [(sign, value) for sign in SIGNS for value in values if _tells(sign, value)]
    by_host = _host_failures(host, uuid) if limits.dcgm_on_hosts else []
    critical = [
        one
        for one in alerts
        if one.gpu_uuid == uuid and one.severity == "critical" and one.action in _REPAIRS
    ]
    if (bad or by_host or critical) and (values or limits.dcgm_on_hosts):
        said = [sign.says.format(value=value.value, what=value.what) for sign, value in bad]
        said += [text for text, _ in by_host] + [f"alert {one.name} fires" for one in critical]
        actions = [sign.action for sign, _ in bad] + [action for _, action in by_host]
        actions = actions or ["replace" if _replaces(critical) else "reset"]
        detail = "; ".join(dict.fromkeys(said))
        return builder.failed(detail, _remedy(actions[0], uuid, limits), uuid)
    if answer and not values:
        remedy = f"{limits.remedies.exporter_restart}, and read its log"
        return builder.unknown("the exporter has no value that tells of faults", remedy, uuid)
    if limits.dcgm_on_hosts and (missing := _missing(host, uuid)):
        return builder.unknown(*missing, uuid)
    counted = f"{len({value.metric for value in values})} values, " if values else ""
    also = "DCGM's host engine finds nothing" if limits.dcgm_on_hosts else ""
    return builder.passed(f"{counted}all well{'; ' if also else ''}{also}", uuid)


def _host_failures(host: Host, uuid: str) -> list[tuple[str, Action]]:
    """What the host engine fails of a GPU, and what that calls for."""
    found: list[tuple[str, Action]] = []
    for answer in host.dcgm:
        for one in answer.of(uuid):
            if one.level < FAILS or answer.is_stale or one.what in IGNORED_WATCHES:
                continue
            if answer.check == "health":
                found.append((f"DCGM's host engine fails {one.what}: {one.text}", "reset"))
            else:
                found.append((f"DCGM's diagnosis fails {one.what}: {one.text}", "diagnosis"))
    return found


def _missing(host: Host, uuid: str) -> tuple[str, str] | None:
    """What is not known of a GPU by the host engine, and how to learn it."""
    for check in CHECKS:
        unit = f"gpuboot-dcgm-{check}"
        remedy = f"on the node: `systemctl start {unit}`, then `journalctl -n 20 -u {unit}`"
        answer = next((one for one in host.dcgm if one.check == check), None)
        if answer is None:
            return f"DCGM's host engine has not been asked (dcgmi {check})", remedy
        if answer.is_stale:
            hours = answer.age_s / 3600
            if hours < 0:
                ahead = f"DCGM's last answer is of {-hours:.1f} h from now (dcgmi {check})"
                return f"{ahead}: the node's clock was set back", remedy
            return f"DCGM's host engine answered {hours:.1f} h ago (dcgmi {check})", remedy
        if check == "health" and not answer.of(uuid):
            return "DCGM's host engine does not know this GPU", (
                "on the node: `dcgmi discovery -l`, `systemctl restart nvidia-dcgm`"
            )
    return None


def _tells(sign: Sign, value: HealthValue) -> bool:
    return value.metric == sign.metric and sign.bad(value.value)


def _replaces(alerts: Iterable[FiringAlert]) -> bool:
    return any(one.action == "replace" for one in alerts)


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
