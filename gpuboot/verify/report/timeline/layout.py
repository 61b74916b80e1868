"""Where everything of the picture of a run lies: time to the right, a lane for each host.

A picture has a fixed width in pixels and is as high as it needs; widths of texts are estimated, on
the wide side, so that none of them meets another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from gpuboot.verify.report.timeline.chain import control_machine, longest_chain
from gpuboot.verify.report.timeline.shapes import (
    FONT,
    Band,
    Bar,
    Picture,
    Text,
    duration,
    text_width,
    tick_step,
)
from gpuboot.verify.report.timeline.stretches import (
    Stretch,
    before_operations,
    of_operations,
    union,
)

MOST_LANES = 40  # of hosts; of more, those that took longest and one lane for the others
CONTROL = "control machine"
_LINE = 15.0
_BAR = 14.0
_PAD = 6.0
_STEP = 10.0  # pixels of the shortest part of the line of the longest chain
_TICKS = 76.0  # pixels between two ticks, at least: room for what stands below them
_SMALLEST = 1.5  # pixels of a bar: what took no time can still be seen


@dataclass(frozen=True)
class _Lane:
    name: str
    note: str  # at its end
    y: float  # of its bars
    items: tuple[Stretch, ...]


def picture(run: Mapping[str, Any], width: float) -> Picture:
    """The picture of a run, in this many pixels.

    + run: as run.json has it, of schema 2 with at least one operation
    + width: below 600 a host's name stands above its lane instead of before it
    """
    narrow = width < 600
    stretches = [*before_operations(run), *of_operations(run)]
    chain = longest_chain(run)
    lanes = _lanes(run, stretches, chain)
    found = Picture(width)
    left = 0.0 if narrow else max(text_width(_short(name)) for name, _, _ in lanes) + 2 * _PAD
    stages = _stages(stretches)
    scale = _scale(stages, lanes, width - left, float(run["seconds"]), narrow)
    _head(found, stages, left, scale)
    placed = _place(found, lanes, left, scale, narrow)
    _bars(found, placed, left, scale)
    _axis(found, left, scale, float(run["seconds"]))
    found.chain = _line(chain, placed, left, scale)
    return found


def _short(name: str, most: int = 24) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _stages(stretches: Iterable[Stretch]) -> list[tuple[str, float, float]]:
    """Name, begin and end of each stage and phase, in order; prepare where nothing else is told."""
    ends: dict[str, tuple[float, float]] = {}
    for item in stretches:
        begun, ended = ends.get(item.stage, (item.begun, item.ended))
        ends[item.stage] = (min(begun, item.begun), max(ended, item.ended))
    return sorted(((name, *times) for name, times in ends.items()), key=lambda item: item[1])


def _lanes(
    run: Mapping[str, Any], stretches: Sequence[Stretch], chain: Sequence[Stretch]
) -> list[tuple[str, str, tuple[Stretch, ...]]]:
    """Name, note and stretches of each lane: first the control machine, then the hosts in order."""
    by_host: dict[str, list[Stretch]] = {host: [] for host in run["hosts"]}
    for item in stretches:
        if item.host:
            by_host.setdefault(item.host, []).append(item)
    shown = _longest(by_host, chain)
    lanes = [(CONTROL, "", tuple(control_machine(run)))]
    lanes += [
        (host, _sent(run, [host]), tuple(items)) for host, items in by_host.items() if host in shown
    ]
    if others := [host for host in by_host if host not in shown]:
        joined = tuple(item for host in others for item in by_host[host])
        lanes.append((f"{len(others)} other hosts", _sent(run, others), joined))
    return lanes


def _longest(by_host: Mapping[str, Sequence[Stretch]], chain: Iterable[Stretch]) -> set[str]:
    """Hosts with a lane of their own: those the run waited for, then those that took longest."""
    if len(by_host) <= MOST_LANES:
        return set(by_host)
    waited_for: dict[str, float] = {}
    for item in chain:
        waited_for[item.host] = waited_for.get(item.host, 0.0) + item.seconds
    seconds = {host: sum(item.seconds for item in items) for host, items in by_host.items()}
    ranked = sorted(by_host, key=lambda host: (-waited_for.get(host, 0.0), -seconds[host]))
    return set(ranked[: MOST_LANES - 1])


def _sent(run: Mapping[str, Any], hosts: Sequence[str]) -> str:
    count = sum(run["hosts"].get(host, {}).get("commands", 0) for host in hosts)
    return f"{count} {'command' if count == 1 else 'commands'}"


def _scale(
    stages: Sequence[tuple[str, float, float]],
    lanes: Sequence[tuple[str, str, tuple[Stretch, ...]]],
    room: float,
    seconds: float,
    narrow: bool,
) -> float:
    """Pixels of a second, so that what stands right of the lanes has its room."""
    notes = 0.0 if narrow else max(text_width(note) for _, note, _ in lanes) + 2 * _PAD
    scale = (room - notes - _PAD) / seconds
    for name, begun, _ in stages:  # a name begins where its stage begins
        scale = min(scale, (room - text_width(name) - 2 * _PAD) / begun if begun else scale)
    return max(scale, room * 0.4 / seconds)


def _head(
    found: Picture, stages: Sequence[tuple[str, float, float]], left: float, scale: float
) -> None:
    """Names of stages in steps that go down to the right: no line to a stage meets a name."""
    tiers: list[int] = []
    for number, (name, begun, _) in reversed(list(enumerate(stages))):
        end = left + begun * scale + text_width(name) + _PAD
        below = [
            tiers[-(other - number)]
            for other in range(number + 1, len(stages))
            if left + stages[other][1] * scale < end
        ]
        tiers.append(max(below, default=-1) + 1)
    tiers.reverse()
    found.top = _PAD + (max(tiers) + 1) * _LINE + _PAD
    for number, (name, begun, ended) in enumerate(stages):
        x, y = left + begun * scale, found.top - _PAD - tiers[number] * _LINE - 3
        found.texts.append(Text(x + 3, y, name))
        width = max((ended - begun) * scale, 0.5)
        found.bands.append(Band(x, width, y - FONT * 0.8, number % 2 == 0))


def _place(
    found: Picture,
    lanes: Sequence[tuple[str, str, tuple[Stretch, ...]]],
    left: float,
    scale: float,
    narrow: bool,
) -> list[_Lane]:
    placed, y = [], found.top + _PAD
    for name, note, items in lanes:
        if narrow:
            found.texts.append(
                Text(left, y + FONT, f"{_short(name)}{f' · {note}' if note else ''}")
            )
            y += _LINE + 1
        else:
            found.texts.append(Text(left - _PAD, y + _BAR - 3, _short(name), end=True))
            if note:
                found.texts.append(Text(found.width, y + _BAR - 3, note, end=True))
        placed.append(_Lane(name, note, y, items))
        y += _BAR + 2 * _PAD
    found.bottom = y
    return placed


def _bars(found: Picture, lanes: Iterable[_Lane], left: float, scale: float) -> None:
    gap = _SMALLEST / scale
    for lane in lanes:
        groups: dict[tuple[str, bool], list[Stretch]] = {}
        for item in lane.items:
            groups.setdefault((item.stage, item.changed), []).append(item)
        for (stage, changed), items in groups.items():
            kind = "changed" if changed else "work"
            for begun, ended in union(((item.begun, item.ended) for item in items), gap):
                names = [it.label for it in items if it.label and begun <= it.begun <= ended]
                _bar(found, lane, (begun, ended), kind, _title(stage, names), (left, scale))
        waits = [wait for item in lane.items for wait in item.waits]
        for begun, ended in union(((begun, ended) for begun, ended, _ in waits), gap):
            names = [f"waited for: {what}" for a, _, what in waits if begun <= a <= ended]
            _bar(found, lane, (begun, ended), "wait", "; ".join(names[:3]), (left, scale))


def _title(stage: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    told = list(dict.fromkeys(names))[:3]
    return f"{stage}: {', '.join(told)}{more}" if told else stage


def _bar(
    found: Picture,
    lane: _Lane,
    times: tuple[float, float],
    kind: str,
    title: str,
    axis: tuple[float, float],
) -> None:
    (begun, ended), (left, scale) = times, axis
    width = max((ended - begun) * scale, _SMALLEST)
    text = f"{lane.name}: {title} ({ended - begun:.1f} s)"
    found.bars.append(Bar(left + begun * scale, lane.y, width, _BAR, kind, text))


def _axis(found: Picture, left: float, scale: float, seconds: float) -> None:
    step = tick_step(seconds, seconds * scale / _TICKS)
    for number in range(int(seconds / step) + 1):
        x = left + number * step * scale
        found.ticks.append(x)
        found.texts.append(Text(x, found.bottom + _LINE, duration(number * step)))
    found.height = found.bottom + _LINE + _PAD


def _line(
    chain: Iterable[Stretch], lanes: Sequence[_Lane], left: float, scale: float
) -> list[tuple[float, float]]:
    """The longest chain: along the lower edge of the lanes that the run waited for.

    Many short links would make a comb that nobody can read: of each few pixels it shows the host
    that the run waited for most in them.
    """
    by_name = {lane.name: lane.y + _BAR + 2.5 for lane in lanes}
    steps: dict[int, dict[float, float]] = {}
    end = 0.0
    for item in chain:
        y = by_name.get(item.host or CONTROL, lanes[-1].y + _BAR + 2.5)
        begun, end = item.begun * scale, item.ended * scale
        for number in range(int(begun / _STEP), ceil(end / _STEP)):
            share = min(end, (number + 1) * _STEP) - max(begun, number * _STEP)
            step = steps.setdefault(number, {})
            step[y] = step.get(y, 0.0) + share
    corners: list[tuple[float, float]] = []
    for number, step in sorted(steps.items()):
        y = max(step, key=lambda lane: step[lane])
        ends = left + number * _STEP, left + min((number + 1) * _STEP, end)
        if corners and corners[-1][1] == y:
            corners[-1] = (ends[1], y)
        else:
            corners += [(ends[0], y), (ends[1], y)]
    return corners
