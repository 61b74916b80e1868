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
    drawing = Picture(width)
    label_width = (
        0.0 if narrow else max(text_width(_short(name)) for name, _, _ in lanes) + 2 * _PAD
    )
    stages = _stages(stretches)
    scale = _scale(stages, lanes, width - label_width, float(run["seconds"]), narrow)
    _head(drawing, stages, label_width, scale)
    placed = _place(drawing, lanes, label_width, narrow)
    _bars(drawing, placed, label_width, scale)
    _axis(drawing, label_width, scale, float(run["seconds"]))
    drawing.chain = _line(chain, placed, label_width, scale)
    return drawing


def _short(name: str, max_length: int = 24) -> str:
    return name if len(name) <= max_length else f"{name[: max_length - 1]}…"


def _stages(stretches: Iterable[Stretch]) -> list[tuple[str, float, float]]:
    """Name, begin and end of each stage and phase, in order; prepare where nothing else is told."""
    ends: dict[str, tuple[float, float]] = {}
    for item in stretches:
        started, finished = ends.get(item.stage, (item.started, item.finished))
        ends[item.stage] = (min(started, item.started), max(finished, item.finished))
    return sorted(((name, *times) for name, times in ends.items()), key=lambda item: item[1])


def _lanes(
    run: Mapping[str, Any], stretches: Sequence[Stretch], chain: Sequence[Stretch]
) -> list[tuple[str, str, tuple[Stretch, ...]]]:
    """Name, note and stretches of each lane: first the control machine, then the hosts in order."""
    by_host: dict[str, list[Stretch]] = {host: [] for host in run["hosts"]}
    for item in stretches:
        if item.host:
            by_host.setdefault(item.host, []).append(item)
    shown_hosts = _longest(by_host, chain)
    lanes = [(CONTROL, "", tuple(control_machine(run)))]
    lanes += [
        (host, _command_count(run, [host]), tuple(items))
        for host, items in by_host.items()
        if host in shown_hosts
    ]
    if other_hosts := [host for host in by_host if host not in shown_hosts]:
        joined = tuple(item for host in other_hosts for item in by_host[host])
        lanes.append((f"{len(other_hosts)} other hosts", _command_count(run, other_hosts), joined))
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


def _command_count(run: Mapping[str, Any], hosts: Sequence[str]) -> str:
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
    for name, started, _ in stages:  # a name begins where its stage begins
        scale = min(scale, (room - text_width(name) - 2 * _PAD) / started if started else scale)
    return max(scale, room * 0.4 / seconds)


def _head(
    drawing: Picture, stages: Sequence[tuple[str, float, float]], left_x: float, scale: float
) -> None:
    """Names of stages in steps that go down to the right: no line to a stage meets a name."""
    tiers: list[int] = []
    for number, (name, started, _) in reversed(list(enumerate(stages))):
        end = left_x + started * scale + text_width(name) + _PAD
        below = [
            tiers[-(later_stage - number)]
            for later_stage in range(number + 1, len(stages))
            if left_x + stages[later_stage][1] * scale < end
        ]
        tiers.append(max(below, default=-1) + 1)
    tiers.reverse()
    drawing.top = _PAD + (max(tiers) + 1) * _LINE + _PAD
    for number, (name, started, finished) in enumerate(stages):
        x, y = left_x + started * scale, drawing.top - _PAD - tiers[number] * _LINE - 3
        drawing.texts.append(Text(x + 3, y, name))
        width = max((finished - started) * scale, 0.5)
        drawing.bands.append(Band(x, width, y - FONT * 0.8, number % 2 == 0))


def _place(
    drawing: Picture,
    lanes: Sequence[tuple[str, str, tuple[Stretch, ...]]],
    left_x: float,
    narrow: bool,
) -> list[_Lane]:
    placed, y = [], drawing.top + _PAD
    for name, note, items in lanes:
        if narrow:
            drawing.texts.append(
                Text(left_x, y + FONT, f"{_short(name)}{f' · {note}' if note else ''}")
            )
            y += _LINE + 1
        else:
            drawing.texts.append(Text(left_x - _PAD, y + _BAR - 3, _short(name), end=True))
            if note:
                drawing.texts.append(Text(drawing.width, y + _BAR - 3, note, end=True))
        placed.append(_Lane(name, note, y, items))
        y += _BAR + 2 * _PAD
    drawing.bottom = y
    return placed


def _bars(drawing: Picture, lanes: Iterable[_Lane], left_x: float, scale: float) -> None:
    gap = _SMALLEST / scale
    for lane in lanes:
        groups: dict[tuple[str, bool], list[Stretch]] = {}
        for item in lane.items:
            groups.setdefault((item.stage, item.changed), []).append(item)
        for (stage, changed), items in groups.items():
            kind = "changed" if changed else "work"
            for started, finished in union(((item.started, item.finished) for item in items), gap):
                names = [
                    stretch.label
                    for stretch in items
                    if stretch.label and started <= stretch.started <= finished
                ]
                _bar(
                    drawing, lane, (started, finished), kind, _title(stage, names), (left_x, scale)
                )
        waits = [wait for item in lane.items for wait in item.waits]
        for started, finished in union(
            ((started, finished) for started, finished, _ in waits), gap
        ):
            names = [
                f"waited for: {wait_name}" for a, _, wait_name in waits if started <= a <= finished
            ]
            _bar(drawing, lane, (started, finished), "wait", "; ".join(names[:3]), (left_x, scale))


def _title(stage: str, names: Sequence[str]) -> str:
    suffix = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown_names = list(dict.fromkeys(names))[:3]
    return f"{stage}: {', '.join(shown_names)}{suffix}" if shown_names else stage


def _bar(
    drawing: Picture,
    lane: _Lane,
    times: tuple[float, float],
    kind: str,
    title: str,
    axis: tuple[float, float],
) -> None:
    (started, finished), (left_x, scale) = times, axis
    width = max((finished - started) * scale, _SMALLEST)
    text = f"{lane.name}: {title} ({finished - started:.1f} s)"
    drawing.bars.append(Bar(left_x + started * scale, lane.y, width, _BAR, kind, text))


def _axis(drawing: Picture, left_x: float, scale: float, seconds: float) -> None:
    step = tick_step(seconds, seconds * scale / _TICKS)
    for number in range(int(seconds / step) + 1):
        x = left_x + number * step * scale
        drawing.ticks.append(x)
        drawing.texts.append(Text(x, drawing.bottom + _LINE, duration(number * step)))
    drawing.height = drawing.bottom + _LINE + _PAD


def _line(
    chain: Iterable[Stretch], lanes: Sequence[_Lane], left_x: float, scale: float
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
        start, end = item.started * scale, item.finished * scale
        for number in range(int(start / _STEP), ceil(end / _STEP)):
            share = min(end, (number + 1) * _STEP) - max(start, number * _STEP)
            step = steps.setdefault(number, {})
            step[y] = step.get(y, 0.0) + share
    corners: list[tuple[float, float]] = []
    for number, step in sorted(steps.items()):
        y = max(step, key=lambda lane: step[lane])
        ends = left_x + number * _STEP, left_x + min((number + 1) * _STEP, end)
        if corners and corners[-1][1] == y:
            corners[-1] = (ends[1], y)
        else:
            corners += [(ends[0], y), (ends[1], y)]
    return corners
