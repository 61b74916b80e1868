"""A plan on a terminal: what changes, old and new, then what it costs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.text import Text

from gpuboot.plan.model import Change, Effect, EffectKind, Item, KeptItem, Plan, Step, Unknown

_MAX_CHANGES = 12  # changes of one operation on one host; the others are counted
_DIFF = 12  # lines of one text's difference
_DIGEST = re.compile(r"[0-9a-f]{40,}")
_LONGEST = 100  # characters of a value
_STYLES = {"+": "green", "-": "red", "~": "yellow", "!": "bold magenta", "?": "cyan"}
_WORDS: dict[EffectKind, str] = {
    "reboot": "reboots",
    "cordon": "is cordoned",
    "drain": "is drained",
    "restart": "restarts",
    "reload": "reloads",
}


def show(plan: Plan, full: bool = False, console: Console | None = None) -> None:
    """Print a plan. + full: all of it, however long; + console: default: standard error"""
    out = console or Console(stderr=True, highlight=False, soft_wrap=True)
    for line in render(plan, full):
        mark = line.strip()[:1]
        style = _STYLES.get(mark, "") if line.startswith("    ") else "bold"
        out.print(Text(line, style=style))


def render(plan: Plan, full: bool = False) -> Iterator[str]:
    """The lines of a plan. + full: all of it, however long"""
    if not plan.steps:
        yield (
            f"Nothing to do: {_count(len(plan.hosts), 'host')} of {plan.cluster} "
            f"{'is' if len(plan.hosts) == 1 else 'are'} as the settings say."
        )
        yield from _decisions(plan, full)
        return
    hosts = {host for step in plan.steps for host in step.hosts}
    yield (
        f"Plan for {plan.cluster}: {_count(len(plan.steps), 'operation')} "
        f"{'changes' if len(plan.steps) == 1 else 'change'} {len(hosts)} of "
        f"{_count(len(plan.hosts), 'host')}; {plan.unchanged} "
        f"{'changes' if plan.unchanged == 1 else 'change'} nothing"
    )
    yield from _packages(plan)
    for phase in plan.phases:
        yield ""
        yield phase
        for step in plan.steps:
            if step.phase == phase:
                yield from _step(step, full)
    yield from _decisions(plan, full)
    yield ""
    yield from _cost(plan)


def _decisions(plan: Plan, full: bool) -> Iterator[str]:
    if plan.decisions:
        yield ""
        yield "Left as somebody has set it"
    for step in plan.decisions:
        yield from _step(step, full)


def _packages(plan: Plan) -> Iterator[str]:
    """All packages, however many: a person must miss none."""
    described = {host: list(_items(items, True)) for host, items in plan.packages.items() if items}
    if described:
        yield ""
        yield "Packages of others, as the package manager rehearsed this run"
        yield from _grouped_lines("Removed, downgraded, or changed though held", described)


def _step(step: Step, full: bool) -> Iterator[str]:
    described = {}
    for host, items in step.hosts.items():
        described[host] = list(_items(items, full))
        if host in step.conditional:
            described[host].append("? only if an earlier operation of this run calls for it")
    yield from _grouped_lines(step.name, described)


def _grouped_lines(name: str, described: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Lines of hosts, with those hosts together that have the same. + described: by host"""
    hosts_by_lines: dict[tuple[str, ...], list[str]] = {}
    for host, lines in described.items():
        hosts_by_lines.setdefault(tuple(lines), []).append(host)
    for lines, hosts in hosts_by_lines.items():
        yield f"  {name} · {', '.join(hosts)}"
        yield from (f"      {line}" for line in lines)


def _items(items: Sequence[Item], full: bool) -> Iterator[str]:
    if not items:
        yield "~ something; it does not tell what"
    changes = _together([item for item in items if isinstance(item, Change)])
    visible = changes if full else changes[:_MAX_CHANGES]
    for change in visible:
        yield from change_lines(change, full)
    if hidden := len(changes) - len(visible):
        yield f"… and {_count(hidden, 'more change')} (--diff shows all)"
    for item in items:
        if isinstance(item, Effect):
            yield f"! {effect_line(item)}"
    for item in items:
        if isinstance(item, Unknown):
            yield f"? {item.what}: not known before {item.until}"
    for item in items:
        if isinstance(item, KeptItem):
            yield from kept_lines(item, full)


def _together(changes: Sequence[Change]) -> list[Change]:
    """Changes with those in one that do the same to several things of a kind."""
    merged = []
    for (kind, *_), similar in groupby(changes, key=_sort):
        items = list(similar)
        names = ", ".join(item.subject.removeprefix(kind).strip() for item in items)
        merged += items if len(items) == 1 else [replace(items[0], subject=f"{kind} {names}")]
    return merged


def _sort(change: Change) -> tuple[str, str, str]:
    """What changes have in common that do the same to several things of a kind."""
    kind, _, name = change.subject.rpartition(" ")
    if not kind or not name or change.diff:
        return change.subject, change.field, repr(change)
    return kind, change.field, _value([change.old, change.new])


def change_lines(change: Change, full: bool = False) -> Iterator[str]:
    """A change as a line, and the lines of a text that differ. + full: however many"""
    name = f"{change.subject}: {change.field}".removesuffix(": ")
    space = " " if change.field else ": "
    if change.diff:
        yield f"~ {name}"
        yield from _diff_lines(change.diff, full)
    elif change.old is None:
        yield f"+ {name}{space}{_value(change.new)}"
    elif change.new is None:
        yield f"- {name}{space}was {_value(change.old)}"
    else:
        yield f"~ {name}{space}{_value(change.old)} → {_value(change.new)}"


def kept_lines(item: KeptItem, full: bool = False) -> Iterator[str]:
    """A kept item as a line, and the lines of a text that differ. + full: however many"""
    yield f"{'= kept:' if item.is_known else '?'} {item.what}: {item.why}"
    yield from _diff_lines(item.diff, full)


def _diff_lines(diff: Sequence[str], full: bool) -> Iterator[str]:
    visible = diff if full else diff[:_DIFF]
    yield from (f"    {_short(line)}" for line in visible)
    if hidden := len(diff) - len(visible):
        yield f"    … and {_count(hidden, 'more line')} (--diff shows all)"


def effect_line(effect: Effect) -> str:
    """What an effect costs, as one sentence."""
    words = f"{effect.target} {_WORDS[effect.kind]}"
    if effect.note:
        words += f": {effect.note}"
    if effect.gpu_pods:
        words += f"; this interrupts GPU pods: {', '.join(effect.gpu_pods)}"
    elif effect.gpu_pods is None:
        words += "; which GPU pods this interrupts is not known"
    elif effect.kind == "reboot":
        words += "; no GPU pods run on it"
    return words


def _cost(plan: Plan) -> Iterator[str]:
    """The lines that a person decides by: reboots, interrupted pods, restarts, time."""
    yield "Cost"
    effects = plan.effects
    for kind, title in (("reboot", "reboots"), ("restart", "restarts"), ("reload", "reloads")):
        targets: dict[str, list[str]] = {}
        for host, item in effects:
            if item.kind == kind:
                targets.setdefault(item.target, []).extend([host] if item.local else [])
        words = [
            f"{target} on {', '.join(dict.fromkeys(hosts))}" if hosts else target
            for target, hosts in targets.items()
        ]
        if words or kind == "reboot":
            yield f"  {title + ':':<12}{'; '.join(words) or 'none'}"
    yield f"  {'GPU pods:':<12}{_interrupted(plan)}"
    yield f"  {'time:':<12}{'; '.join(_time(plan))}"


def _interrupted(plan: Plan) -> str:
    effects = [item for _, item in plan.effects]
    pods = dict.fromkeys(pod for item in effects for pod in item.gpu_pods or ())
    items = [
        item for step in plan.steps for host_items in step.hosts.values() for item in host_items
    ]
    unknown = any(item.gpu_pods is None for item in effects)
    if unknown and not pods:
        return "which are interrupted is not known"
    message = f"interrupted: {', '.join(pods)}" if pods else "none is interrupted"
    unsure = unknown or any(isinstance(item, Unknown) for item in items)
    return f"{message}, as far as is known before the run" if unsure else message


def _time(plan: Plan) -> Iterator[str]:
    for phase in plan.timed_phases:
        if last := plan.durations.get(phase):
            bound = "at most " if last.changed_more else ""
            yield f"{phase} {bound}{last.seconds:.0f} s (as on {last.started[:10]})"
    unknown = [phase for phase in plan.phases if phase not in plan.durations]
    if unknown == plan.phases:
        yield "not known: no earlier run changed the same"
    elif unknown:
        yield f"not known for {', '.join(unknown)}: no earlier run changed the same"


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if _DIGEST.fullmatch(text):
        text = f"{text[:12]}…"
    return _short(text) or '""'


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"
