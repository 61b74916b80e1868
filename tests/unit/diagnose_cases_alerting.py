"""What people have stopped or silenced in monitoring, each beside what looks like it.

Silences are as Alertmanager 0.34.0 has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboot.diagnose.facts import Facts
from gpuboot.verify.alert_path import parse_silences
from tests.unit.diagnose_site import SELECTS, STACK, Case, cluster, site


def _silenced(name: str, value: str, ends: str, state: str = "active") -> Facts:
    """+ name, value: of the silence's matcher, a regular expression"""
    silence = {
        "id": "f59ffa43-53d9-4778-bc3f-568f1b10f294",
        "createdBy": "op",
        "comment": "quiet",
        "endsAt": ends,
        "status": {"state": state},
        "matchers": [{"name": name, "value": value, "isRegex": True, "isEqual": True}],
    }
    return site(at=cluster(silences=parse_silences([silence])))


def _stack(**spec: Any) -> Facts:
    return site(at=cluster(prometheuses=((STACK, {**SELECTS, **spec}),)))


def _alertmanager(spec: Mapping[str, Any]) -> Facts:
    return site(at=cluster(alertmanagers=((STACK, spec),)))


_SOON, _FAR = "2026-09-21T18:00:00.000Z", "2029-01-01T00:00:00.000Z"

CASES = (
    Case(
        "alerts-silenced",
        _silenced("alertname", ".+", _SOON),
        _silenced("alertname", ".+", _SOON, state="expired"),
        '{alertname=~".+"} by op until 2026-09-21T18:00:00.000Z (quiet) holds back every alert',
    ),
    Case(
        "alerts-silenced",
        _silenced("alertname", "GPULost", _FAR),
        # for maintenance
        _silenced("alertname", "GPULost", _SOON),
        "holds back GPULost",
    ),
    Case(
        "alerts-silenced",
        _silenced("node", "gpu1", _FAR),
        # one GPU, which somebody knows of
        _silenced("UUID", "GPU-1", _FAR),
        'holds back every alert of gpuboot of node=~"gpu1"',
    ),
    Case(
        "monitoring-stopped",
        _stack(paused=True),
        _stack(paused=False),
        f"Prometheus {STACK} is paused: the operator applies no change to it",
    ),
    Case(
        "monitoring-stopped",
        _alertmanager({"replicas": 0}),
        _alertmanager({"replicas": 1}),
        f"Alertmanager {STACK} has 0 replicas",
    ),
)
