"""What happens to a cluster, and what an alert is to say about it: cases for promtool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Labels = Mapping[str, str]
STEP_S = 30  # between samples, unless a case says otherwise
HELD = {"namespace": "ml", "pod": "train-0", "container": "main"}
G0 = {"node": "gpu1", "UUID": "GPU-0", "gpu": "0"}
G1 = {"node": "gpu1", "UUID": "GPU-1", "gpu": "1"}
_TARGET = {"job": "nvidia-dcgm-exporter", "instance": "gpu1"}
_CARD = {
    "device": "nvidia0",
    "pci_bus_id": "00000000:10:00.0",
    "modelName": "NVIDIA H100 80GB HBM3",
    "DCGM_FI_DRIVER_VERSION": "595.91.07",
}


@dataclass(frozen=True)
class Case:
    """One course of events.

    + alert: whom it is about
    + what: what happens, in words; unique for the alert
    + series: series -> values in promtool's notation
    + fires: minute -> labels of each alert that fires then, without those that every alert has
    + quiet: minutes at which it does not fire
    + step: seconds between samples and between evaluations
    + restart: whether the exporter restarts in it
    """

    alert: str
    what: str
    series: Mapping[str, str]
    fires: Mapping[float, Sequence[Labels]] = field(default_factory=dict)
    quiet: Sequence[float] = ()
    step: int = STEP_S
    restart: bool = False


def series(metric: str, **labels: str) -> str:
    """A series by its name and labels."""
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{metric}{{{inside}}}"


def dcgm(metric: str, of: Labels = G0, /, **more: str) -> str:
    """A series as the exporter's scrape stores it: target, card, GPU, and what `more` says."""
    return series(metric, **{**_TARGET, **_CARD, **of, **more})


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


def level(
    alert: str,
    metric: str,
    *,
    bad: float,
    good: float,
    hold: float = 0,
    beside: Mapping[str, float] | None = None,
    labels: Labels | None = None,
    series_labels: Labels | None = None,
) -> list[Case]:
    """The courses that every alert on a GPU's state must tell apart.

    + bad, good: values just beyond and just at the limit
    + hold: minutes for which it must hold
    + beside: other metrics of the same GPU, which do not change
    + labels: the alert's own labels beside the GPU's
    """
    said = [{**G0, **(labels or {})}]
    more = dict(series_labels or {})
    one = dcgm(metric, **more)
    rest = {dcgm(name): f"{value}x200" for name, value in (beside or {}).items()}
    first, second = dcgm(metric, **more, **HELD), dcgm(metric, **more, **{**HELD, "pod": "next"})
    long = hold + 10
    return [
        Case(
            alert,
            "fires when it has held, and resolves",
            {one: values((good, 10), (bad, long), (good, 10))} | rest,
            {10 + hold + 1: said, 10 + long - 1: said},
            (9, *([10 + hold - 0.5] if hold else []), 10 + long + 1),
        ),
        Case(alert, "just within the limit", {one: values((good, long + 10))} | rest, {}, (long,)),
        Case(
            alert,
            "goes on as the same alert when the GPU's pod changes",
            {
                first: values((bad, long), (None, 1)),
                second: values((None, long), (bad, long)),
            }
            | rest,
            {long - 1: said, long + 1: said, 2 * long - 1: said},
        ),
        Case(
            alert,
            "is there again after the exporter has restarted",
            {one: values((bad, long), (None, 2), (bad, long))} | rest,
            {long - 1: said, long + 2 + hold + 1: said},
            (long + 1,),
            restart=True,
        ),
    ]
