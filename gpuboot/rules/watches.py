"""The results of DCGM's health watches as series with our own severity.

Made of the table in `gpuboot/hosts/health_watches.py`, which says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuboot.hosts.health_watches import FAILS, MEANINGS, MODELS, WARNS, Meaning
from gpuboot.rules.promql import BLANK, GPU, level, quoted
from gpuboot.rules.record import Record
from gpuboot.rules.requirements import Requirement

RESULTS = "gpu:health_watch:level"
JUDGED = "gpu:health_watch:judged"
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
            _named(f"{level('DCGM_EXP_GPU_HEALTH_STATUS', RESULT)} > 0"),
            "What DCGM's health watches find, by the exporter: 10 warns, 20 fails.",
        ),
        Record(
            LINKS_USED,
            _links_used(),
            "1 for GPUs whose NVLinks carried data while DCGM found none of them down.",
        ),
        Record(JUDGED, _judged(RESULTS, "node, UUID, result", of_node), f"The same {help_}"),
        Record(
            HOST_RESULTS,
            _named(on_host),
            "What DCGM's host engine found last: 10 warns, 20 fails.",
            requires=Requirement.DCGM_ON_HOSTS,
        ),
        Record(
            HOST_JUDGED,
            _judged(HOST_RESULTS, "node, UUID, entity, result", of_host),
            f"The same {help_}",
            requires=Requirement.DCGM_ON_HOSTS,
        ),
    ]


def _links_used() -> str:
    """Bridges between PCIe cards may be there or not: those that were used should be up."""
    well = (
        'DCGM_EXP_GPU_HEALTH_STATUS{health_watch="NVLINK", health_error_code="DCGM_FR_OK"}'
        f" and on (node, UUID) DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL > 0 < {BLANK}"
    )
    return f"group by (node, UUID) ({well}\n  or last_over_time({LINKS_USED}[1h]))"


def _named(series: str) -> str:
    """Watch and code as one label, which one regular expression can tell."""
    return f'label_join({series}, "result", "/", "health_watch", "health_error_code")'


def _judged(series: str, key: str, several: str) -> str:
    """The first line that fits a result decides, and what none fits is a warning.

    + key: labels that tell one result from another; several: nodes with more than one GPU
    """
    lines = [*_by_card(series, several), *_by_code(series), _labelled(series, "warning")]
    return f"\nor on ({key}) ".join(lines)


def _by_card(series: str, several: str) -> Iterator[str]:
    conditions = {
        "linked": f" and on (node) {several}",
        "used": f" and on (node, UUID) {LINKS_USED}",
    }
    for one in MEANINGS:
        if one.cards != "any":
            model = f"modelName=~{quoted(MODELS[one.cards])}"
            there = conditions.get(one.cards, "")
            for level_, severity in ((FAILS, one.fails), (WARNS, one.warns)):
                found = f"{series}{{result=~{quoted(_results([one]))}, {model}}} == {level_}"
                yield _labelled(f"({found}{there})", severity)


def _by_code(series: str) -> Iterator[str]:
    for level_ in (FAILS, WARNS):
        for severity in ("critical", "warning", "info"):
            fitting = [
                one for one in MEANINGS if one.cards == "any" and one.severity(level_) == severity
            ]
            found = f"{series}{{result=~{quoted(_results(fitting))}}} == {level_}"
            yield _labelled(f"({found})", severity)


def _results(meanings: Iterable[Meaning]) -> str:
    """A regular expression for the label `result`."""
    pairs = {f"{watch}/{code}" for one in meanings for watch in one.watches for code in one.codes}
    return "|".join(sorted(pair.replace("(", "\\(").replace(")", "\\)") for pair in pairs))


def complaints() -> str:
    """Selects what DCGM fails a GPU for now, and not for an XID in the past."""
    of_xid = quoted(_results(one for one in MEANINGS if not one.sign))
    return f'{JUDGED}{{judged="critical", result!~{of_xid}}}'


def _labelled(series: str, severity: str) -> str:
    return f'label_replace({series}, "judged", "{severity}", "", "")'
