"""Series by kind of GPU: what is demand, and what there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gpuboot.usage.capacity.hourly import HOUR
from gpuboot.usage.capacity.pools import ALL, UNNAMED, Pool, pools, shown
from gpuboot.usage.capacity.report import Plan, capacity, text
from gpuboot.usage.series import History, SeriesError, StepSeries, Window
from tests.unit.demand_series import START


def series(values: dict[int, float], **labels: str) -> StepSeries:
    return StepSeries(labels, values)


def history(found: Mapping[str, tuple[StepSeries, ...]], hours: int = 2) -> History:
    return History(Window(START, START + hours * HOUR, HOUR), found, {"retention": "15d"})


RESOURCE = "nvidia_com_gpu"


def of(model: str, *values: float) -> StepSeries:
    """A series of so many hours, as the queries name it."""
    moments = (START + hour * HOUR for hour in range(len(values)))
    labels = {"label_nvidia_com_gpu_product": model} if model else {}
    return series(dict(zip(moments, values, strict=True)), resource=RESOURCE, **labels)


def test_demand_is_allocated_and_pending_of_hours_that_are_known() -> None:
    given = {
        "allocated": (of("H100", 3, 4),),
        "pending": (of("", 2),),
        "installed": (of("H100", 8, 6),),
        "gang": (of("H100", 2, 1),),
        "unavailable": (of("H100", 1, 1),),
    }
    ((pool, seen),) = pools(history(given)).items()
    assert pool == Pool("H100", "nvidia.com/gpu")
    assert seen.demand.values == (5.0,)
    assert (seen.installed, seen.gang, seen.unavailable) == (6, 2, 1)


def test_what_waits_names_no_model_where_there_are_several() -> None:
    given = {
        "allocated": (of("H100", 3), of("A100", 1)),
        "pending": (of("", 2),),
        "installed": (of("H100", 8), of("A100", 4)),
    }
    found = pools(history(given))
    assert {pool.model: seen.demand.values for pool, seen in found.items()} == {
        "A100": (1.0,),
        "H100": (3.0,),
        ALL: (6.0,),
    }
    assert found[Pool("H100", "nvidia.com/gpu")].notes == (UNNAMED,)
    assert found[Pool(ALL, "nvidia.com/gpu")].installed == 12


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("nvidia_com_gpu", "nvidia.com/gpu"),
        ("nvidia_com_gpu_shared", "nvidia.com/gpu.shared"),
        ("nvidia_com_mig_1g_10gb", "nvidia.com/mig-1g.10gb"),
        ("nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb"),
        ("", ""),
    ],
)
def test_resources_are_named_as_kubernetes_names_them(given: str, name: str) -> None:
    assert shown(given) == name


def test_series_that_mean_nothing_are_named() -> None:
    with pytest.raises(SeriesError, match="no such series: gpus; known are demand, allocated"):
        pools(history({"gpus": (series({START: 1}),)}))
    with pytest.raises(SeriesError, match="neither demand nor allocated"):
        pools(history({"pending": (series({START: 1}),)}))


def test_short_history_says_how_prometheus_keeps_more() -> None:
    report = capacity("lab", history({"demand": (series({START: 1}, model="H100"),)}), Plan())
    assert report.exit_code == 2
    said = text(report)
    assert "H100: unknown" in said
    assert "no forecast: 1 hour of history; 3 weeks are needed" in said
    assert "note: Prometheus keeps 15d; the setting monitoring.retention keeps more" in said


def test_a_retention_by_size_is_told_in_words() -> None:
    seen = replace(
        history({"demand": (series({START: 1}, model="H100"),)}),
        about={"retention": "15d or 1GiB716MiB"},
    )
    assert "note: Prometheus keeps 15d, 1 GiB 716 MiB at most; the setting" in text(
        capacity("lab", seen, Plan())
    )
