"""What happens to a cluster, and what an alert is to say about it: cases for promtool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Labels = Mapping[str, str]
STEP_S = 30  # between samples, unless a case says otherwise
HOLDER = {"namespace": "ml", "pod": "train-0", "container": "main"}
G0 = {"node": "gpu1", "UUID": "GPU-0", "gpu": "0"}
G1 = {"node": "gpu1", "UUID": "GPU-1", "gpu": "1"}
_TARGET = {"job": "nvidia-dcgm-exporter", "instance": "gpu1"}
_CARD = {
    "device": "nvidia0",
    "pci_bus_id": "00000000:10:00.0",
    "modelName": "NVIDIA H100 80GB HBM3",
    "DCGM_FI_DRIVER_VERSION": "595.91.07",
}


# DCGM_INT64_NOT_SUPPORTED and DCGM_FP64_BLANK of DCGM 4.6.0, dcgmlib/dcgm_structs.h.
_BLANKS = (9223372036854775794, 140737488355328)


@dataclass(frozen=True)
class Case:
    """One course of events.

    + alert: whom it is about
    + description: what happens, in words; unique for the alert
    + series: series -> values in promtool's notation
    + fires: minute -> labels of each alert that fires then, without those that every alert has
    + silent: minutes at which it does not fire
    + step: seconds between samples and between evaluations
    + restart: whether the exporter restarts in it
    """

    alert: str
    description: str
    series: Mapping[str, str]
    fires: Mapping[float, Sequence[Labels]] = field(default_factory=dict)
    silent: Sequence[float] = ()
    step: int = STEP_S
    restart: bool = False

    def checks(self) -> Iterator[tuple[float, Sequence[Labels]]]:
        """Minutes, and which alerts fire then."""
        yield from self.fires.items()
        yield from ((minute, ()) for minute in self.silent)


def series(metric: str, **labels: str) -> str:
    """A series by its name and labels."""
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{metric}{{{inside}}}"


def dcgm(metric: str, of: Labels = G0, /, **labels: str) -> str:
    """A series as the exporter's scrape stores it: target, card, GPU, and what `labels` says."""
    return series(metric, **{**_TARGET, **_CARD, **of, **labels})


def up(node: str = "gpu1") -> str:
    """The scrape's own series of a node's exporter."""
    return series("up", job="nvidia-dcgm-exporter", node=node, instance=node)


Part = tuple[float | str | None, float] | tuple[float, float, float]


def values(*parts: Part, step: int = STEP_S) -> str:
    """Values over time.

    + parts: (value, minutes); (start, minutes, rise per minute) for a counter; None for the value:
      no sample, as when the target is gone (marked stale, as Prometheus does)
    + step: seconds between samples
    """
    text = []
    for value, minutes, *rise in parts:
        count = round(minutes * 60 / step)
        if value is None:
            text.append("stale" + (f" _x{count - 1}" if count > 1 else ""))
        elif rise:
            text.append(f"{value}+{rise[0] * step / 60:g}x{count - 1}")
        else:
            text.append(f"{value}x{count - 1}")
    return " ".join(text)


@dataclass(frozen=True)
class _Level:
    """An alert on a GPU's state, and the series that its courses are made of.

    + alert_labels: the labels of the alert that fires
    + other_series: series of other metrics of the same GPU, which do not change
    + hold, long: minutes for which it must hold, and some that are longer
    """

    alert: str
    metric: str
    bad: float
    good: float
    hold: float
    long: float
    alert_labels: Sequence[Labels]
    labels: Labels
    other_series: Mapping[str, str]

    def series(self, **labels: str) -> str:
        return dcgm(self.metric, **{**self.labels, **labels})

    def case(self, description: str, *parts: Part, **extra: Any) -> Case:
        return Case(
            self.alert, description, {self.series(): values(*parts), **self.other_series}, **extra
        )


def level(
    alert: str,
    metric: str,
    *,
    bad: float,
    good: float,
    hold: float = 0,
    other_metrics: Mapping[str, float] | None = None,
    labels: Labels | None = None,
    series_labels: Labels | None = None,
) -> list[Case]:
    """The courses that every alert on a GPU's state must tell apart.

    + bad, good: values just beyond and just at the limit
    + hold: minutes for which it must hold
    + other_metrics: other metrics of the same GPU, which do not change
    + labels: the alert's own labels beside the GPU's
    """
    alert_labels = [{**G0, **(labels or {})}]
    other_series = {dcgm(name): f"{value}x200" for name, value in (other_metrics or {}).items()}
    of = _Level(
        alert, metric, bad, good, hold, hold + 10, alert_labels, series_labels or {}, other_series
    )
    return [*_limits(of), _another_pod(of), *_gaps(of)]


def _limits(of: _Level) -> list[Case]:
    long = of.long
    return [
        of.case(
            "fires when it has held, and resolves",
            (of.good, 10), (of.bad, long), (of.good, 10),
            fires={10 + of.hold + 1: of.alert_labels, 10 + long - 1: of.alert_labels},
            silent=(9, *([10 + of.hold - 0.5] if of.hold else []), 10 + long + 1),
        ),
        of.case("just within the limit", (of.good, long + 10), silent=(long,)),
        of.case(
            "DCGM's marks for no value, of whole numbers and of others",
            (of.good, 5), (_BLANKS[0], long), (_BLANKS[1], long),
            silent=(4, long + 4, 2 * long + 4),
        ),
    ]  # fmt: skip


def _another_pod(of: _Level) -> Case:
    long = of.long
    courses = {
        of.series(**HOLDER): values((of.bad, long), (None, 1)),
        of.series(**{**HOLDER, "pod": "next"}): values((None, long), (of.bad, long)),
    }
    return Case(
        of.alert,
        "goes on as the same alert when the GPU's pod changes",
        {**courses, **of.other_series},
        dict.fromkeys((long - 1, long + 1, 2 * long - 1), of.alert_labels),
    )


def _gaps(of: _Level) -> list[Case]:
    bad, good, long = of.bad, of.good, of.long
    return [
        of.case(
            "goes on while the exporter restarts, or nobody scrapes for three minutes",
            (bad, long), (None, 3), (bad, long),
            fires=dict.fromkeys(
                (long - 1, long + 0.5, long + 2.5, long + 3.5, long + 5), of.alert_labels
            ),
            restart=True,
        ),
        of.case(
            "ends when the GPU comes back repaired, and when it has been gone for long",
            (bad, long), (None, 3), (good, 20), (bad, long), (None, 20),
            fires=dict.fromkeys((long - 1, long + 2, 2 * long + 22), of.alert_labels),
            silent=(long + 4, 2 * long + 23 + 11),
            restart=True,
        ),
    ]  # fmt: skip


def counter(
    alert: str,
    metric: str,
    *,
    low: float,
    high: float,
    hold: float,
    other_metrics: Mapping[str, float] | None = None,
    **labels: str,
) -> list[Case]:
    """A counter that rises, by its rises a minute just within and beyond the limit.

    + other_metrics: other metrics of the same GPU, which do not change
    """
    alert_labels = [{**G0, **labels}]
    metric_series = dcgm(metric)
    other_series = {dcgm(name): f"{value}x200" for name, value in (other_metrics or {}).items()}
    return [
        Case(
            alert, "rises too fast for long, then no more",
            {metric_series: values((0, 10), (0, 40, high), (40 * high, 40))} | other_series,
            {10 + 5 + hold + 5: alert_labels},
            (9, 10 + hold - 1, 70),
        ),
        Case(
            alert, "rises as it may",
            {metric_series: values((0, 40, low))} | other_series, silent=(20, 39),
        ),
        Case(
            alert,
            "the exporter restarts, and the driver with it: back to 0, and as slow as before",
            {metric_series: values((1e6, 20, low), (None, 2), (0, 40, low))} | other_series,
            silent=(19, 23, 25, 30, 40, 50), restart=True,
        ),
        Case(
            alert, "DCGM's mark for no value comes and goes",
            {metric_series: values((5, 20), (_BLANKS[0], 20), (5, 20))} | other_series,
            silent=(19, *range(20, 60)),
        ),
    ]  # fmt: skip
