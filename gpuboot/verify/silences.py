"""Silences that hold back alerts of gpuboot's for good, or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
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
# labels of alerts that name a machine: a silence over all that such a one says is named as well
_NODE_LABELS = ("node", "Hostname", "instance", "nodename")


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
    """Silences over all of our alerts, and those over some, or over a node, that do not end soon.

    + cluster: its name, which is a label of every alert
    + now: seconds since 1970
    """
    path = AlertPath(heartbeat=HeartbeatAlert(labels={"cluster": cluster}))
    decisions = []
    for silence in silences:
        node_matchers = [item for item in silence.matchers if item.name in _NODE_LABELS]
        of_nodes = ", ".join(map(str, node_matchers if not muted_by(silence, rules, path) else ()))
        wider = tuple(item for item in silence.matchers if item not in node_matchers)
        muted = sorted(muted_by(replace(silence, matchers=wider), rules, path))
        is_every = bool(rules) and len(muted) == len(rules)
        is_all = is_every and not of_nodes
        ends = datetime.fromisoformat(silence.ends).timestamp()
        if is_all or (muted and ends - now > _LASTING_DAYS * 86400):
            names = "every alert of gpuboot" if is_every else join_first(muted, _MAX_NAMES, ", ")
            place = f" of {of_nodes}" if of_nodes else ""
            decisions.append(
                Decision(what=f"{title_of(silence)} holds back {names}{place}", why=end_of(silence))
            )
    return decisions
