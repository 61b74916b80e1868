"""Silences that hold back alerts of gpuboot's for good, or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from gpuboot.config.inventory import Node
from gpuboot.config.problems import join_first
from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules import groups
from gpuboot.plan import Decision
from gpuboot.verify.alert_path import AlertPath, HeartbeatAlert, Silence
from gpuboot.verify.checks.alerting_checks import end_of, muted_by, title_of
from gpuboot.verify.evidence import Rule

# one that ends within this time is for maintenance
_LASTING_DAYS = 30
_MAX_NAMES = 4


def alert_rules(settings: Settings, nodes: Sequence[Node]) -> list[Rule]:
    """Our alerts, as Prometheus has them."""
    return [
        Rule(name=rule["alert"], health="ok", group=group["name"], labels=rule["labels"])
        for group in groups(settings, nodes)
        for rule in group["rules"]
        if "alert" in rule
    ]


def lasting(
    silences: Iterable[Silence], rules: Sequence[Rule], cluster: str, now: float
) -> list[Decision]:
    """Silences over all of our alerts, and those over some of them that are not to end soon.

    + cluster: its name, which is a label of every alert
    + now: seconds since 1970
    """
    path = AlertPath(heartbeat=HeartbeatAlert(labels={"cluster": cluster}))
    decisions = []
    for silence in silences:
        muted = sorted(muted_by(silence, rules, path))
        is_all = bool(rules) and len(muted) == len(rules)
        ends = datetime.fromisoformat(silence.ends).timestamp()
        if is_all or (muted and ends - now > _LASTING_DAYS * 86400):
            names = "every alert of gpuboot" if is_all else join_first(muted, _MAX_NAMES, ", ")
            decisions.append(
                Decision(what=f"{title_of(silence)} holds back {names}", why=end_of(silence))
            )
    return decisions
