"""`gpuboot capacity`: whether there are enough GPUs, until when, and what fits now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from gpuboot.cli import asking, ranges, runs

if TYPE_CHECKING:
    from gpuboot.usage.capacity.capacity_question import CapacityQuestion
    from gpuboot.usage.capacity.capacity_report import Capacity, Plan
    from gpuboot.usage.series import History

Weeks = Annotated[int, typer.Option("--weeks", min=1, max=156, help="How far to look back.")]
LeadTime = Annotated[
    int, typer.Option("--lead-time", min=1, help="Weeks from ordering GPUs until they work.")
]
Target = Annotated[
    float, typer.Option("--target", min=0.1, max=1, help="Share of the GPUs that demand may take.")
]
Installed = Annotated[
    int | None, typer.Option("--installed", min=0, help="GPUs; default: as the series say.")
]
Gang = Annotated[
    int | None,
    typer.Option("--gang", min=0, help="GPUs of the largest job; default: the largest seen."),
]
Repair = Annotated[
    float | None,
    runs.rare_option(
        "--repair", min=0, help="GPUs under repair; default: P95 of those unavailable."
    ),
]
Cpu = Annotated[
    float, runs.rare_option("--cpu-per-gpu", min=0, help="Cores a job takes with a GPU.")
]
Memory = Annotated[
    float,
    runs.rare_option("--memory-per-gpu", min=0, help="GiB of memory a job takes with a GPU."),
]


def capacity(
    site: asking.Site,
    token_file: asking.TokenFile = None,
    ca_file: asking.CaFile = None,
    weeks: Weeks = 26,
    lead_time: LeadTime = 12,
    target: Target = 0.85,
    installed: Installed = None,
    gang: Gang = None,
    repair: Repair = None,
    cpu_per_gpu: Cpu = 1.0,
    memory_per_gpu: Memory = 4.0,
    as_json: runs.AsJson = False,
    data: runs.Data = None,
    _all_options: runs.AllOptions = False,
) -> None:
    """When GPUs run out, by a forecast of what is asked for, and what fits into the cluster now.

    Exit code: 0 there are enough for the lead time, 1 GPUs have to be ordered, 2 nobody can tell.
    """
    from gpuboot.usage.capacity.capacity_report import Plan, text

    question = _question(weeks, cpu_per_gpu, memory_per_gpu)
    plan = Plan(target, lead_time, installed, gang, repair)
    if asking.is_address(site):
        history = ranges.at_address(question.ranges, site, token_file, ca_file)
        report = _of_series(site, plan, history)
    else:
        report = _of_cluster(site, plan, asking.through_leader(question, site, data or []))
    print(json.dumps(report.to_json(), indent=1) if as_json else text(report), flush=True)
    raise typer.Exit(report.exit_code)


def _question(weeks: int, cpu: float, memory: float) -> CapacityQuestion:
    import time

    from gpuboot.usage.capacity.capacity_question import CapacityQuestion
    from gpuboot.usage.capacity.fit import Shape
    from gpuboot.usage.capacity.pools import queries, window
    from gpuboot.usage.ranges import RangeQuestion

    range_question = RangeQuestion(queries(), window(time.time(), weeks))
    return CapacityQuestion(range_question, Shape(cpu, memory))


def _of_cluster(inventory: str, plan: Plan, answer_text: str) -> Capacity:
    from dataclasses import replace

    from gpuboot.usage.capacity.capacity_question import answered
    from gpuboot.usage.capacity.capacity_report import capacity as made

    answer = answered(answer_text)
    cluster_name = answer.history.metadata.get("cluster", "") if answer.history else ""
    report = made(cluster_name or inventory, answer.history, plan, answer.history_error)
    return replace(report, fit=answer.fit, fit_refusal=answer.fit_error)


def _of_series(source: str, plan: Plan, history: History) -> Capacity:
    from dataclasses import replace

    from gpuboot.usage.capacity.capacity_report import capacity as made

    return replace(made(source, history, plan), fit_refusal="give the inventory of a cluster")
