"""Prometheus and Alertmanager over HTTP, and the exporters' exposition text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from gpuboot.cluster.objects import JsonReader
from gpuboot.telemetry.anchor import AGES, ANCHORS
from gpuboot.verify.checks.health_checks import METRICS
from gpuboot.verify.devices import SeriesKey
from gpuboot.verify.evidence import HealthValue, Reading, Rule, Target
from gpuboot.verify.firing_alerts import FiringAlert, firing_alerts

TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
POWER = "DCGM_FI_DEV_POWER_USAGE"
FREE, USED = "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED"
MEMORY = (FREE, USED, "DCGM_FI_DEV_FB_RESERVED")
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_REMEMBERED = "1h"
# DCGM's "no value" numbers (dcgm_fields.h: 0x7ffffffffffffff0 and up, 140737488355328.0 and up)
BLANK_VALUE = 140737488355328.0
_BLANK_INT32 = (0x7FFFFFF0, 0x7FFFFFFF)  # those of its 32-bit integers
_LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Sample:
    """A value of a series. time: when it was taken, unix seconds; None if that is not known."""

    name: str
    labels: Mapping[str, str]
    value: float
    time: float | None = None


@dataclass(frozen=True)
class Series:
    """A series with what was scraped: time (unix seconds) and value, oldest first."""

    name: str
    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


class PrometheusError(RuntimeError):
    """Prometheus answered, and the answer is an error."""


class Prometheus:
    """Prometheus' HTTP API.

    + reader: how to get there
    + base: path of its root, e.g. a service proxy's
    """

    def __init__(self, reader: JsonReader, base: str) -> None:
        self._reader = reader
        self._base = base

    def query(self, expression: str) -> list[Sample]:
        """An instant query. Raises `PrometheusError` and what the reader raises."""
        data = self._api("query", {"query": expression})
        return [
            Sample(
                item["metric"].get("__name__", ""),
                item["metric"],
                float(item["value"][1]),
                float(item["value"][0]),
            )
            for item in data["result"]
        ]

    def scraped(self, selector: str) -> list[Series]:
        """The samples behind a range selector such as `up[5m]`, as they were scraped."""
        data = self._api("query", {"query": selector})
        if data.get("resultType") != "matrix":
            raise PrometheusError(f"{selector} is no range selector")
        return [
            Series(
                item["metric"].get("__name__", ""),
                item["metric"],
                tuple((float(time), float(value)) for time, value in item["values"]),
            )
            for item in data["result"]
        ]

    def query_range(self, expression: str, start: int, end: int, step: int) -> list[dict[str, Any]]:
        """A range query: the matrix as it is. start, end (unix seconds) and step (s): when."""
        when = {"start": str(start), "end": str(end), "step": str(step)}
        data = self._api("query_range", {"query": expression, **when})
        return list(data["result"])

    def retention(self) -> str:
        """How long samples are kept, e.g. `15d or 1.7 GiB`; "" where Prometheus does not say."""
        return readable_sizes(str(self._api("status/runtimeinfo").get("storageRetention", "")))

    def targets(self) -> tuple[Target, ...]:
        """All active scrape targets."""
        return tuple(
            Target(
                job=item["labels"].get("job", item.get("scrapePool", "")),
                node=item["labels"].get("node", ""),
                health=item["health"],
                url=item.get("scrapeUrl", ""),
                error=item.get("lastError", ""),
            )
            for item in self._api("targets", {"state": "active"})["activeTargets"]
        )

    def rules(self) -> tuple[Rule, ...]:
        """All loaded rules."""
        return tuple(
            Rule(
                name=rule["name"],
                health=rule.get("health", "unknown"),
                error=rule.get("lastError", ""),
                group=group.get("name", ""),
                labels=rule.get("labels", {}),
            )
            for group in self._api("rules")["groups"]
            for rule in group["rules"]
        )

    def alerts(self) -> tuple[FiringAlert, ...]:
        """The alerts that fire now."""
        return firing_alerts(self._api("alerts")["alerts"])

    def alertmanagers(self) -> tuple[str, ...]:
        """URLs of the Alertmanagers that alerts are sent to."""
        return tuple(item["url"] for item in self._api("alertmanagers")["activeAlertmanagers"])

    def gpu_series(self) -> tuple[Reading, ...]:
        """A reading per series of a GPU or MIG slice: node, workload pod, age.

        Series that the last scrape of their target did not have are left out. Prometheus ends them
        with a staleness marker, unless it was restarted in between: then they last for its
        lookback of five minutes.
        """
        samples = self.query(AGES)
        scraped: dict[tuple[str, ...], float] = defaultdict(float)
        for sample in samples:
            scraped[_target(sample)] = max(scraped[_target(sample)], sample.value)
        readings = []
        for sample in samples:
            if sample.value < scraped[_target(sample)]:
                continue
            age = max(0.0, (sample.time or 0.0) - sample.value)
            readings.append(
                replace(_reading(sample.labels, sample.labels.get("node", "")), age_s=age)
            )
        return tuple(readings)

    def earlier_names(self, namespaces: str) -> dict[SeriesKey, float]:
        """When a GPU's or slice's series last named a pod, as Prometheus is configured now.

        + namespaces: regular expression of the pods' namespaces

        Unit: unix seconds. Looks back for `_REMEMBERED`, and not beyond the last time that the
        configuration was loaded: what was stored under another one shows nothing of this one.
        """
        loaded = datetime.fromisoformat(self._api("status/runtimeinfo")["lastConfigTime"])
        query = f'{{__name__=~"{"|".join(ANCHORS)}",namespace=~"{namespaces}"}}[{_REMEMBERED}]'
        newest: dict[SeriesKey, float] = {}
        for series in self.scraped(query):
            key = series.labels.get("UUID", ""), series.labels.get("GPU_I_ID", "")
            newest[key] = max(newest.get(key, 0.0), *(time for time, _ in series.points))
        return {key: time for key, time in newest.items() if time > loaded.timestamp()}

    def _api(self, call: str, query: Mapping[str, str] | None = None) -> Any:
        answer = self._reader.json(f"{self._base}/api/v1/{call}", query)
        if answer.get("status") != "success":
            raise PrometheusError(f"{call}: {answer.get('error', answer)}")
        return answer["data"]


def parse_exposition(text: str) -> Iterator[Sample]:
    """The samples of a /metrics page. Raises ValueError that quotes a line it cannot read."""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.match(line.strip())
        if match is None:
            raise ValueError(f"no exposition line: {line[:120]!r}")
        name, labels, value = match.groups()
        yield Sample(name, _labels(labels or ""), float(value))


def _labels(text: str) -> dict[str, str]:
    unescape = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
    return {
        key: re.sub(r"\\[\\\"n]", lambda escaped: unescape[escaped.group()], value)
        for key, value in _LABEL.findall(text)
    }


def gpu_readings(samples: Iterable[Sample], node: str) -> tuple[Reading, ...]:
    """What an exporter's samples say of each GPU, and under MIG of each slice.

    + node: the node of the exporter's pod
    """
    devices: dict[SeriesKey, list[Sample]] = {}
    for sample in samples:
        if (uuid := sample.labels.get("UUID")) and sample.name.startswith("DCGM_FI_"):
            key = uuid, sample.labels.get("GPU_I_ID", "")
            devices.setdefault(key, []).append(sample)
    return tuple(_merged(of_device, node) for of_device in devices.values())


def health_values(samples: Iterable[Sample]) -> tuple[HealthValue, ...]:
    """What an exporter's samples say of faults of its GPUs; blank values are left out."""
    return tuple(
        HealthValue(
            uuid=sample.labels["UUID"],
            metric=sample.name,
            value=sample.value,
            watch=sample.labels.get("health_watch", ""),
            code=sample.labels.get("health_error_code", ""),
        )
        for sample in samples
        if sample.name in METRICS and sample.labels.get("UUID") and _has_value(sample)
    )


def _has_value(sample: Sample) -> bool:
    """Whether a sample is more than DCGM's number for no value. NaN is none either."""
    low, high = _BLANK_INT32
    return abs(sample.value) < BLANK_VALUE and not low <= sample.value <= high


def _merged(samples: Sequence[Sample], node: str) -> Reading:
    values: dict[str, float] = {}
    for sample in samples:
        # of a shared GPU, FB_USED has a series of each pod's own beside that of the whole
        if _has_value(sample):
            values[sample.name] = max(sample.value, values.get(sample.name, sample.value))
    # an idle GPU uses nothing and a full one has nothing free: only together they are its size
    memory = (
        [values[name] for name in MEMORY if name in values] if {FREE, USED} <= set(values) else []
    )
    pods = [name for sample in samples if (name := _pod(sample.labels))]
    return replace(
        _reading(samples[0].labels, node),
        pod=pods[0] if pods else "",
        pods=frozenset(pods),
        temperature=values.get(TEMPERATURE),
        power=values.get(POWER),
        memory=sum(memory) if memory else None,
        energy=values.get(ENERGY),
        anchored=any(name in values for name in ANCHORS),
    )


def _target(sample: Sample) -> tuple[str, ...]:
    """The labels of a GPU or slice and its scrape target: all its series there have one time."""
    return tuple(sample.labels.get(name, "") for name in ("UUID", "GPU_I_ID", "instance"))


def _reading(labels: Mapping[str, str], node: str) -> Reading:
    return Reading(
        uuid=labels.get("UUID", ""),
        node=node,
        pod=_pod(labels),
        slice=labels.get("GPU_I_ID", ""),
        share=tuple(labels.get(name, "") for name in ("container", "vgpu", "hpc_job")),
    )


def _pod(labels: Mapping[str, str]) -> str:
    return f"{labels.get('namespace', '')}/{labels['pod']}" if labels.get("pod") else ""


_SIZE = re.compile(r"\b(?:\d+(?:[KMGTPE]i)?B)+\b")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def readable_sizes(text: str) -> str:
    """A text in which sizes as Prometheus writes them (`1GiB716MiB`) are one number each."""
    return _SIZE.sub(lambda match: _size(match[0]), text)


def _size(text: str) -> str:
    parts = [(int(number), unit) for number, unit in re.findall(r"(\d+)([KMGTPE]?i?B)", text)]
    size, place = float(sum(number << 10 * _UNITS.index(unit) for number, unit in parts)), 0
    while size >= 1024 and place < len(_UNITS) - 1:
        size, place = size / 1024, place + 1
    return f"{round(size, 1):g} {_UNITS[place]}"
