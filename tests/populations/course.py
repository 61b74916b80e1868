"""Populations over time, as Prometheus scrapes them, and what the rules make of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import floor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import yaml

from gpuboot.config import settings
from gpuboot.monitoring import rules
from gpuboot.telemetry import BY_NAME
from gpuboot.telemetry.expressions import metric_names
from tests.populations.machine import Machine
from tests.populations.model import Population
from tests.populations.offers import allocatable, devices, node_object
from tests.populations.page import Page
from tests.rules.suite import run

# The table has as many driver versions as kinds of GPU.
SETTINGS = settings.parse_settings(
    {
        "cost": {"gpu_hour": {"*": 1}},
        "alerts": {"rules": {"GPUDriverVersionSkew": {"threshold": 99}}},
    }
)
_FIRED = re.compile(r'\{alertname="(\w+)"(?:, node="([^"]*)")?\} ([-+.\dE]+)')
Points = list[float | None]
Samples = list[tuple[str, dict[str, str], float]]


@dataclass(frozen=True)
class Course:
    """What happens to a population's node. Unit: minutes.

    + idle: how long nobody holds its GPUs; then a pod works on each
    + since: from when on all of this holds:
    + changed: what the exporter shows then
    + rising: counter -> its rise a minute
    + scraped: False: the exporter does not answer; target: False: Prometheus has no such target
    + advertised: allocatable
    """

    of: Population
    idle: int = 0
    since: float = 0
    changed: Callable[[Page], Page] = lambda page: page
    rising: Mapping[str, float] = field(default_factory=dict)
    scraped: bool = True
    target: bool = True
    advertised: Mapping[str, str] | None = None
    blanks: bool = False

    def page(self, minute: float) -> Page | None:
        """What the exporter shows at this minute; None without an answer."""
        late = minute >= self.since
        if late and not (self.scraped and self.target):
            return None
        busy = minute >= self.idle
        pods_by_device: dict[str, list[tuple[str, str]]] = {}
        for uuid, pod, _ in _held_shares(self.of):
            pods_by_device.setdefault(uuid, []).append(("ml", pod))
        page = Page(self.of, pods_by_device if busy else {}, busy, self.blanks)
        return self.changed(page) if late else page


@dataclass(frozen=True)
class Time:
    """How long it goes on, in minutes, and the seconds between samples and evaluations."""

    minutes: int
    step: int

    def __iter__(self) -> Iterator[float]:
        return (at * self.step / 60 for at in range(self.count))

    @property
    def count(self) -> int:
        return self.minutes * 60 // self.step

    def points(self, *parts: tuple[float, float | None]) -> Points:
        """+ parts: minute from which on -> value; None: no sample"""
        return [
            next(value for since, value in reversed(parts) if minute >= since) for minute in self
        ]


def fired(folder: Path, courses: Iterable[Course], time: Time) -> dict[str, set[str]]:
    """Node ("" for none) -> alerts that fired at any time, with all courses in one cluster."""
    return {node: set(alerts) for node, alerts in first_fired(folder, courses, time).items()}


def first_fired(folder: Path, courses: Iterable[Course], time: Time) -> dict[str, dict[str, float]]:
    """The same, with the minute at which each fired first."""
    pending_courses = list(courses)
    groups = rules.groups(SETTINGS, [Machine(course.of).node for course in pending_courses])
    unfired_courses = [
        {key: rule[key] for key in rule if key != "annotations"}
        for group in groups
        for rule in group["rules"]
    ]
    _write(folder / "rules.yml", {"groups": [{"name": "all", "rules": unfired_courses}]})
    read = {name for rule in unfired_courses for name in metric_names(rule["expr"])}
    series = {
        "etcd_server_has_leader{}": f"1x{time.count}",
        "gpuboot_etcd_backup_timestamp_seconds{}": f"0+{time.step}x{time.count}",  # just taken
    }
    for course in pending_courses:
        series |= {
            name: _text(points)
            for name, points in _series(course, time)
            if name.partition("{")[0] in read
        }
    firing = f'timestamp(ALERTS{{alertstate="firing"}})[{time.minutes}m:{time.step}s]'
    minimum_query = f"min by (alertname, node) (min_over_time({firing}))"
    test = {
        "interval": f"{time.step}s",
        "input_series": [{"series": name, "values": text} for name, text in series.items()],
        "promql_expr_test": [
            {"expr": minimum_query, "eval_time": f"{time.minutes}m", "exp_samples": []}
        ],
    }
    suite = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{time.step}s",
        "tests": [test],
    }
    _write(folder / "suite.yml", suite)
    return _alerts(run("test", "rules", folder / "suite.yml"))


def _alerts(result: CompletedProcess[str]) -> dict[str, dict[str, float]]:
    """promtool expected no series, and tells those that there are."""
    assert ", err: " not in result.stdout, result.stdout
    alerts: dict[str, dict[str, float]] = {}
    for name, node, second in _FIRED.findall(result.stdout):
        alerts.setdefault(node, {})[name] = float(second) / 60
    assert alerts or result.returncode == 0, result.stdout
    return alerts


def _write(path: Path, content: Mapping[str, Any]) -> None:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    path.write_text(yaml.dump(content, Dumper=dumper, sort_keys=False))


def _series(course: Course, time: Time) -> Iterator[tuple[str, Points]]:
    yield from _exported(course, time).items()
    yield from _node(course, time)
    yield from _pods(course, time)


def _exported(course: Course, time: Time) -> dict[str, Points]:
    target = {"job": "nvidia-dcgm-exporter", "node": course.of.node, "instance": course.of.node}
    exported: dict[str, Points] = {}
    phases: dict[tuple[bool, bool], _Exposition | None] = {}
    risen: dict[tuple[str, ...], float] = {}
    up: Points = []
    for at, minute in enumerate(time):
        phase = minute >= course.idle, minute >= course.since
        if phase not in phases:
            page = course.page(minute)
            rising = course.rising if phase[1] else {}
            phases[phase] = None
            if page is not None:
                phases[phase] = _Exposition(list(page.samples()), target, rising, time.step / 60)
        now = phases[phase]
        up.append(1.0 if now is not None else 0.0 if course.target else None)
        for series, value, counter, rise in now.series if now else []:
            if counter:
                risen[counter] = risen.get(counter, 0.0) + rise
            points = exported.setdefault(series, [])
            points += [None] * (at - len(points)) + [value + floor(risen.get(counter, 0.0))]
    return {_name("up", target): up} | {
        name: points + [None] * (time.count - len(points)) for name, points in exported.items()
    }


class _Exposition:
    """A page as series: name, value, and of a counter what it counts and how it rises."""

    def __init__(
        self, samples: Samples, target: dict[str, str], rising: Mapping[str, float], minutes: float
    ) -> None:
        rises = _rises(samples, rising, minutes)
        self.series: list[tuple[str, float, tuple[str, ...], float]] = []
        for metric, labels, value in samples:
            counter: tuple[str, ...] = ()
            if BY_NAME[metric].kind == "counter":
                slice_, xid = labels.get("GPU_I_ID", ""), labels.get("xid", "")
                counter = (metric, labels["UUID"], slice_, xid)
            name = _name(metric, {**target, **labels})
            self.series.append((name, value, counter, rises.get((metric, labels["UUID"]), 0.0)))


def _rises(
    samples: Samples, rising: Mapping[str, float], minutes: float
) -> dict[tuple[str, str], float]:
    """Counter and UUID -> its rise from one sample to the next."""
    rises = {}
    for metric, labels, value in samples:
        if metric in rising:
            rises[metric, labels["UUID"]] = rising[metric] * minutes
        elif metric == "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION":
            rises[metric, labels["UUID"]] = 6e6 * minutes
        elif metric == "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" and int(value) & 4 and value < 1e15:
            capped = "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS"
            rises[capped, labels["UUID"]] = 36e9 * minutes
    return rises


def _node(course: Course, time: Time) -> Iterator[tuple[str, Points]]:
    """kube-state-metrics on the node."""
    node = course.of.node
    early, late = node_object(course.of), node_object(course.of, course.advertised)
    labels = {f"label_{_safe(k)}": v for k, v in early["metadata"]["labels"].items()}
    ready = {"node": node, "condition": "Ready", "status": "true"}
    constant = time.points((0, 1.0))
    yield _name("kube_node_info", {"node": node}), constant
    yield _name("kube_node_labels", {"node": node, **labels}), constant
    yield _name("kube_node_status_condition", ready), constant
    yield _name("kube_node_spec_unschedulable", {"node": node}), time.points((0, 0.0))
    for kind in ("capacity", "allocatable"):
        for resource in allocatable(course.of):
            resource_labels = {"node": node, "resource": _safe(resource), "unit": "integer"}
            before, after = (float(item["status"][kind].get(resource, 0)) for item in (early, late))
            points = time.points((0, before), (course.since, after))
            yield _name(f"kube_node_status_{kind}", resource_labels), points


def _held_shares(of: Population) -> Iterator[tuple[str, str, str]]:
    """Each device or share in use: UUID, pod, resource. Of a shared GPU the second pod has two."""
    for number, (uuid, resource) in enumerate(devices(of).items()):
        yield uuid, f"train-{number}", resource
        if of.shares > 1:
            for _ in range(2):
                yield uuid, f"train-{number}-two", resource


def _pods(course: Course, time: Time) -> Iterator[tuple[str, Points]]:
    """kube-state-metrics on the pods that hold the devices."""
    presence = time.points((0, None), (course.idle, 1.0))
    counts = Counter((pod, resource) for _, pod, resource in _held_shares(course.of))
    for (name, resource), count in counts.items():
        pod = {"namespace": "ml", "pod": name, "node": course.of.node}
        request = {"container": "main", "resource": _safe(resource), "unit": "integer"}
        units = time.points((0, None), (course.idle, float(count)))
        yield _name("kube_pod_info", pod), presence
        yield _name("kube_pod_status_phase", {**pod, "phase": "Running"}), presence
        yield _name("kube_pod_container_resource_requests", {**pod, **request}), units


def _safe(text: str) -> str:
    """A label's or resource's name as kube-state-metrics writes it."""
    return "".join(char if char.isalnum() else "_" for char in text)


def _name(metric: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{metric}{{{inside}}}"


def _text(points: Points) -> str:
    """promtool's notation, in which what is equal or rises evenly is one item."""
    parts: list[str] = []
    at = 0
    while at < len(points):
        end = _run_end(points, at)
        first = points[at]
        if first is None:
            remaining = end - at - (at > 0)
            parts += ["stale"] * (at > 0) + ([f"_x{remaining}"] if remaining else [])
        else:
            parts.append(f"{first!r}+{_rise(points, at)!r}x{end - at - 1}".replace("+-", "-"))
        at = end
    return " ".join(parts)


def _run_end(points: Points, at: int) -> int:
    first, rise = points[at], _rise(points, at)
    end = at + 1
    while end < len(points) and points[end] == (
        None if first is None else first + (end - at) * rise
    ):
        end += 1
    return end


def _rise(points: Points, at: int) -> float:
    current, after = points[at], points[at + 1] if at + 1 < len(points) else None
    return after - current if current is not None and after is not None else 0.0
