"""The results of DCGM's health watches as series with our own severity.

Made of the table in `gpuboot/hosts/health_watches.py`, which says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuboot.hosts.health_watches import FAILS, MEANINGS, MODELS, WARNS, Meaning
from gpuboot.monitoring.rules.promql import BLANK_VALUE, GPU, level, quoted
from gpuboot.monitoring.rules.record import Record
from gpuboot.monitoring.rules.requirements import Requirement

RESULTS = "gpu:health_watch:level"
GPU_JUDGED = "gpu:health_watch:judged"
HOST_RESULTS = "gpu:dcgm_health:level"
HOST_JUDGED = "gpu:dcgm_health:judged"
LINKS_USED = "gpu:nvlinks_used:info"
# what tells one result from another
RESULT = f"{GPU}, modelName, health_watch, health_error_code"
HOST_RESULT = f"{GPU}, entity, modelName, health_watch, health_error_code"


def records(visible: str) -> list[Record]:
    """+ visible: record of the GPUs that the exporter shows"""
    on_host = f"max by ({HOST_RESULT}) (gpuboot_dcgm_health > 0)"
    of_node = f"count by (node) (count by (node, UUID) ({visible})) > 1"
    of_host = 'count by (node) (count by (node, UUID) (gpuboot_dcgm_health{UUID!=""})) > 1'
    help_ = "with the label `judged`: critical, warning or info, by error code, card and level."
    return [
        Record(
            RESULTS,
            _with_result_label(f"{level('DCGM_EXP_GPU_HEALTH_STATUS', RESULT)} > 0"),
            "What DCGM's health watches find, by the exporter: 10 warns, 20 fails.",
        ),
        Record(
            LINKS_USED,
            _links_used(),
            "1 for GPUs whose NVLinks carried data while DCGM found none of them down.",
        ),
        Record(
            GPU_JUDGED, _with_severity(RESULTS, "node, UUID, result", of_node), f"The same {help_}"
        ),
        Record(
            HOST_RESULTS,
            _with_result_label(on_host),
            "What DCGM's host engine found last: 10 warns, 20 fails.",
            requires=Requirement.DCGM_ON_HOSTS,
        ),
        Record(
            HOST_JUDGED,
            _with_severity(HOST_RESULTS, "node, UUID, entity, result", of_host),
            f"The same {help_}",
            requires=Requirement.DCGM_ON_HOSTS,
        ),
    ]


def _links_used() -> str:
    """PromQL for GPUs whose NVLink was used and should be up; unused bridges may be absent."""
    well = (
        'DCGM_EXP_GPU_HEALTH_STATUS{health_watch="NVLINK", health_error_code="DCGM_FR_OK"}'
        f" and on (node, UUID) DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL > 0 < {BLANK_VALUE}"
    )
    return f"group by (node, UUID) ({well}\n  or last_over_time({LINKS_USED}[1h]))"


def _with_result_label(series: str) -> str:
    """Watch and code as one label, which one regular expression can tell."""
    return f'label_join({series}, "result", "/", "health_watch", "health_error_code")'


def _with_severity(series: str, key: str, multi_gpu_nodes: str) -> str:
    """The first line that fits a result decides, and what none fits is a warning.

    + key: labels that tell one result from another; multi_gpu_nodes: nodes with more than one GPU
    """
    lines = [*_by_card(series, multi_gpu_nodes), *_by_code(series), _labelled(series, "warning")]
    return f"\nor on ({key}) ".join(lines)


def _by_card(series: str, multi_gpu_nodes: str) -> Iterator[str]:
    conditions = {
        "linked": f" and on (node) {multi_gpu_nodes}",
        "used": f" and on (node, UUID) {LINKS_USED}",
    }
    for meaning in MEANINGS:
        if meaning.cards != "any":
            model = f"modelName=~{quoted(MODELS[meaning.cards])}"
            condition = conditions.get(meaning.cards, "")
            for level_, severity in ((FAILS, meaning.fails), (WARNS, meaning.warns)):
                matching = f"{series}{{result=~{quoted(_results([meaning]))}, {model}}} == {level_}"
                yield _labelled(f"({matching}{condition})", severity)


def _by_code(series: str) -> Iterator[str]:
    for level_ in (FAILS, WARNS):
        for severity in ("critical", "warning", "info"):
            fitting = [
                meaning
                for meaning in MEANINGS
                if meaning.cards == "any" and meaning.severity(level_) == severity
            ]
            matching = f"{series}{{result=~{quoted(_results(fitting))}}} == {level_}"
            yield _labelled(f"({matching})", severity)


def _results(meanings: Iterable[Meaning]) -> str:
    """A regular expression for the label `result`."""
    pairs = {
        f"{watch}/{code}"
        for meaning in meanings
        for watch in meaning.watches
        for code in meaning.codes
    }
    return "|".join(sorted(pair.replace("(", "\\(").replace(")", "\\)") for pair in pairs))


def complaints() -> str:
    """PromQL that selects what DCGM fails a GPU for now, and not for an XID in the past."""
    of_xid = quoted(_results(meaning for meaning in MEANINGS if not meaning.sign))
    return f'{GPU_JUDGED}{{judged="critical", result!~{of_xid}}}'


def _labelled(series: str, severity: str) -> str:
    return f'label_replace({series}, "judged", "{severity}", "", "")'
