"""Inhibitions: alerts that keep quiet while another one, that explains them, fires.

An inhibition whose `equal` names a label that neither alert has takes them for equal: so each rule
asks by its matchers for the labels it compares. (`cluster` may be missing: then there is only one.)
"""

from __future__ import annotations

from typing import Any

Rule = dict[str, Any]

# every alert of ours carries `gpu_action`, and nobody else's does
_GPUBOOT_ALERT = 'gpu_action != ""'
_FOREIGN_ALERT = 'gpu_action = ""'
_NODE, _GPU, _WATCH = 'node != ""', 'UUID != ""', 'health_watch != ""'
_NOT_CRITICAL = 'severity =~ "warning|info"'
_PLACE = ["cluster", "node"]
_THING = ["cluster", "alertname", "node", "UUID", "namespace", "pod"]
_UPSTREAM = ["namespace", "alertname"]

UNDER_REPAIR = "GPUNodeUnderRepair"
REPAIR_STUCK = "GPURepairStuck"
NOT_READY = "GPUNodeNotReady"


def _rule(source: list[str], target: list[str], equal: list[str]) -> Rule:
    return {"source_matchers": source, "target_matchers": target, "equal": equal}


def _name(*alerts: str) -> str:
    is_single = len(alerts) == 1
    return f'alertname {"=" if is_single else "=~"} "{"|".join(alerts)}"'


def rules() -> list[Rule]:
    """All inhibitions: by what is broken, then by severity."""
    return [*_of_nodes(), *_of_exporters(), *_of_gpus(), *_severities()]


def _of_nodes() -> list[Rule]:
    return [
        # somebody works on the node: only what is critical may disturb, or that it takes so long
        _rule(
            [_name(UNDER_REPAIR), _NODE],
            [_GPUBOOT_ALERT, _NODE, _NOT_CRITICAL, f'alertname !~ "{UNDER_REPAIR}|{REPAIR_STUCK}"'],
            _PLACE,
        ),
        # a node that is gone says nothing true about its GPUs, and its exporter is gone as well
        _rule(
            [_name(NOT_READY), _NODE],
            [_GPUBOOT_ALERT, _NODE, f'alertname !~ "{NOT_READY}|{UNDER_REPAIR}|{REPAIR_STUCK}"'],
            _PLACE,
        ),
        _rule(
            [_name(NOT_READY), _NODE], [_name("KubeNodeNotReady", "KubeNodeUnreachable")], _PLACE
        ),
    ]


def _of_exporters() -> list[Rule]:
    return [
        # without its exporter a node shows no metric. What is critical goes out all the same: a
        # dead GPU can stop the exporter
        _rule(
            [_name("GPUExporterDown"), _NODE],
            [_name("GPUMetricsMissing", "GPUExporterMissingCounters"), _NODE, _NOT_CRITICAL],
            _PLACE,
        ),
        # no exporter anywhere: that a node has none is a consequence
        _rule(
            [_name("GPUExporterAbsent")],
            [_name("GPUNodeNotMonitored"), _NODE, _NOT_CRITICAL],
            ["cluster"],
        ),
    ]


def _of_gpus() -> list[Rule]:
    return [
        # the XID is the cause; what else that GPU says, short of critical, follows from it
        _rule(
            [_name("GPUXidFatal"), _GPU],
            [
                'alertname =~ "GPUXid.*|GPUHealth.*|GPURecoveryAction"',
                'alertname != "GPUXidFatal"',
                _GPU,
                _NOT_CRITICAL,
            ],
            ["cluster", "UUID"],
        ),
        # the same errors, and rows besides
        _rule(
            [_name("GPUMemoryDegrading"), _GPU],
            [_name("GPUCorrectableECCRate"), _GPU],
            ["cluster", "UUID"],
        ),
        # both say what the same engine says
        *(
            _rule(
                [_name(f"GPUHealth{level}"), _GPU, _WATCH],
                [_name(f"DCGMHealth{level}"), _GPU, _WATCH],
                ["cluster", "UUID", "health_watch"],
            )
            for level in ("Fail", "Warn")
        ),
        # a GPU that fell off the bus takes its last readings with it
        _rule([_name("GPULost"), _NODE], [_GPUBOOT_ALERT, _NODE, _GPU, _NOT_CRITICAL], _PLACE),
    ]


def _severities() -> list[Rule]:
    return [
        # kube-prometheus-stack's own, kept as they are for its own alerts. Ours rarely have a
        # namespace: by these a critical alert on one node would silence the warning on another.
        _rule(
            ['severity = "critical"', _FOREIGN_ALERT], [_NOT_CRITICAL, _FOREIGN_ALERT], _UPSTREAM
        ),
        _rule(
            ['severity = "warning"', _FOREIGN_ALERT],
            ['severity = "info"', _FOREIGN_ALERT],
            _UPSTREAM,
        ),
        # InfoInhibitor fires for info alerts of a namespace without worse ones, and mutes them:
        # it would silence every info alert of ours, which somebody asked to have by e-mail
        _rule(
            [_name("InfoInhibitor"), 'namespace != ""'],
            ['severity = "info"', _FOREIGN_ALERT, 'namespace != ""'],
            ["cluster", "namespace"],
        ),
        {"target_matchers": [_name("InfoInhibitor")]},
        # the same alert of the same thing, only worse
        _rule(['severity = "critical"', _GPUBOOT_ALERT], [_NOT_CRITICAL, _GPUBOOT_ALERT], _THING),
        _rule(
            ['severity = "warning"', _GPUBOOT_ALERT], ['severity = "info"', _GPUBOOT_ALERT], _THING
        ),
    ]
