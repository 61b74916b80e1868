"""Series by kind of GPU: what is demand, and what there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gpuboot.usage.capacity.capacity_report import Plan, capacity, text
from gpuboot.usage.capacity.hourly import HOUR
from gpuboot.usage.capacity.pools import ALL, UNNAMED, Pool, kubernetes_name, pools
from gpuboot.usage.series import History, SeriesError, StepSeries, Window
from tests.unit.demand_series import START


def series(values: dict[int, float], **labels: str) -> StepSeries:
    return StepSeries(labels, values)


def history(series: Mapping[str, tuple[StepSeries, ...]], hours: int = 2) -> History:
    return History(Window(START, START + hours * HOUR, HOUR), series, {"retention": "15d"})


RESOURCE = "nvidia_com_gpu"


def of(model: str, *values: float) -> StepSeries:
    """A series of so many hours, as the queries name it."""
    moments = (START + hour * HOUR for hour in range(len(values)))
    labels = {"label_nvidia_com_gpu_product": model} if model else {}
    return series(dict(zip(moments, values, strict=True)), resource=RESOURCE, **labels)


def test_demand_is_allocated_and_pending_of_hours_that_are_known() -> None:
    samples = {
        "allocated": (of("H100", 3, 4),),
        "pending": (of("", 2),),
        "installed": (of("H100", 8, 6),),
        "gang": (of("H100", 2, 1),),
        "unavailable": (of("H100", 1, 1),),
    }
    ((pool, usage),) = pools(history(samples)).items()
    assert pool == Pool("H100", "nvidia.com/gpu")
    assert usage.demand.values == (5.0,)
    assert (usage.installed, usage.gang, usage.unavailable) == (6, 2, 1)


def test_what_waits_names_no_model_where_there_are_several() -> None:
    samples = {
        "allocated": (of("H100", 3), of("A100", 1)),
        "pending": (of("", 2),),
        "installed": (of("H100", 8), of("A100", 4)),
    }
    by_pool = pools(history(samples))
    assert {pool.model: usage.demand.values for pool, usage in by_pool.items()} == {
        "A100": (1.0,),
        "H100": (3.0,),
        ALL: (6.0,),
    }
    assert by_pool[Pool("H100", "nvidia.com/gpu")].notes == (UNNAMED,)
    assert by_pool[Pool(ALL, "nvidia.com/gpu")].installed == 12


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("nvidia_com_gpu", "nvidia.com/gpu"),
        ("nvidia_com_gpu_shared", "nvidia.com/gpu.shared"),
        ("nvidia_com_mig_1g_10gb", "nvidia.com/mig-1g.10gb"),
        ("nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb"),
        ("", ""),
    ],
)
def test_resources_are_named_as_kubernetes_names_them(resource: str, name: str) -> None:
    assert kubernetes_name(resource) == name


def test_without_demand_there_is_no_pool() -> None:
    with pytest.raises(SeriesError, match="no series of demand"):
        pools(history({"pending": (series({START: 1}),)}))


def test_short_history_says_how_prometheus_keeps_more() -> None:
    report = capacity("lab", history({"allocated": (series({START: 1}, model="H100"),)}), Plan())
    assert report.exit_code == 2
    output = text(report)
    assert "H100: unknown" in output
    assert "no forecast: 1 hour of history; 3 weeks are needed" in output
    assert "note: Prometheus keeps 15d; the setting monitoring.retention keeps more" in output


def test_a_retention_by_size_is_told_in_words() -> None:
    observed = replace(
        history({"allocated": (series({START: 1}, model="H100"),)}),
        metadata={"retention": "15d or 1GiB716MiB"},
    )
    assert "note: Prometheus keeps 15d, 1 GiB 716 MiB at most; the setting" in text(
        capacity("lab", observed, Plan())
    )
