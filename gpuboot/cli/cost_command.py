"""`gpuboot cost`: who held GPUs, who used them, what that costs, and where every hour went."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gpuboot.cli import asking, ending, ranges, runs
from gpuboot.config.exit_codes import NOT_WRITTEN

if TYPE_CHECKING:
    from gpuboot.usage.cost.cost_question import CostQuestion
    from gpuboot.usage.cost.cost_report import Report
    from gpuboot.usage.series import History


Format = Literal["table", "csv", "json"]

Site = Annotated[
    str,
    typer.Argument(
        metavar="INVENTORY",
        help="pyinfra inventory, Prometheus' address, or a file of --save.",
    ),
]
_TIMES = "A day, a day and time, or a span that ends at --until, such as 7d or 90m."
Since = Annotated[str, typer.Option("--since", help=f"{_TIMES} Default: 7d.")]
Until = Annotated[str, typer.Option("--until", help="A day, or a day and time; default: now.")]
Month = Annotated[str, typer.Option("--month", help="Instead of both, such as 2026-10.")]
By = Annotated[
    list[str] | None,
    typer.Option("--by", help="day, team, namespace, pod, model; again for more; default: team."),
]
AsFormat = Annotated[Format, typer.Option("--format", help="How the report is written.")]
Price = Annotated[
    list[str] | None,
    typer.Option("--price", help="MODEL=PRICE of a GPU hour; over the settings cost.gpu_hour."),
]
Currency = Annotated[str | None, runs.rare_option("--currency", help="Over cost.currency.")]
Save = Annotated[Path | None, typer.Option("--save", help="Keep Prometheus' answers here.")]


def cost(
    site: Site,
    since: Since = "",
    until: Until = "",
    month: Month = "",
    by: By = None,
    as_format: AsFormat = "table",
    price: Price = None,
    currency: Currency = None,
    save: Save = None,
    token_file: asking.TokenFile = None,
    ca_file: asking.CaFile = None,
    data: runs.Data = None,
    _all_options: runs.AllOptions = False,
) -> None:
    """Report who held GPUs, who used them, what that costs, and where every GPU hour went.

    tenants + unallocated + unavailable = installed GPUs x time, for each model: it is checked and
    shown with every report. Exit code: 0, or 2 where there is no report that adds up.
    """
    from gpuboot.usage.cost.cost_question import CostQuestion
    from gpuboot.usage.cost.errors import CostError

    keys = _keys(by)
    question = CostQuestion(since, until, month, int(time.time()))
    try:
        if _is_file(site):
            history = _recorded(Path(site))
        elif asking.is_address(site):
            history = _at_address(question, site, token_file, ca_file)
        else:
            history = ranges.through_leader(question, site, data or [])
        cost_report = _report(history, question, price or [], currency, _is_file(site))
        print(_format_report(cost_report, as_format, keys), flush=True)
        if save is not None and not ending.try_write(lambda: _save(history, save), save):
            raise typer.Exit(NOT_WRITTEN)
    except CostError as error:
        runs.stop(str(error))


def _is_file(site: str) -> bool:
    """Whether a command was given recorded answers instead of an inventory."""
    return Path(site).suffix == ".json" and not asking.is_address(site)


def _keys(by: list[str] | None) -> list[str]:
    from gpuboot.usage.cost.cost_lines import KEYS

    keys = [word for text in by or ["team"] for word in text.split(",")]
    if unknown_keys := [key for key in keys if key not in KEYS]:
        runs.stop(
            f"nothing is known by {', '.join(unknown_keys)}\n    remedy: one of {', '.join(KEYS)}"
        )
    return keys


def _recorded(path: Path) -> History:
    from gpuboot.usage.cost.errors import CostError
    from gpuboot.usage.series import SeriesError, from_json

    try:
        return from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CostError(f"{path}: {error.strerror}", "a file that --save has written") from None
    except SeriesError as error:
        raise CostError(f"{path}: {error}", "a file that --save has written") from None


def _at_address(
    question: CostQuestion, url: str, token_file: Path | None, ca_file: Path | None
) -> History:
    from gpuboot.usage.cost.cost_question import ranges as of_period

    return ranges.at_address(of_period(question.period({})), url, token_file, ca_file)


def _save(history: History, path: Path) -> None:
    from gpuboot.usage.series import to_json

    path.write_text(to_json(history), encoding="utf-8")


def _report(
    history: History,
    question: CostQuestion,
    price: list[str],
    currency: str | None,
    is_recorded: bool,
) -> Report:
    """The report of what was answered, with what the settings and the command line say of money."""
    from gpuboot.usage.cost import prices
    from gpuboot.usage.cost.cost_report import report
    from gpuboot.usage.cost.period import check_kept

    of_settings: dict[str, Any] = history.metadata.get("cost", {})
    period = question.period_of(history)
    if not is_recorded:
        check_kept(period, history.metadata.get("retention", ""), question.now)
    price_list = prices.with_options(prices.from_settings(of_settings), price, currency)
    cost_report = report(replace(history, window=period.window), period, price_list)
    prices.check_models(price, (proof.model for proof in cost_report.proofs))
    return cost_report


def _format_report(cost_report: Report, as_format: Format, keys: list[str]) -> str:
    """The report; CSV has no room for the proof, which stands on stderr."""
    from gpuboot.usage.cost import cost_tables

    if as_format == "csv":
        typer.echo(
            "\n".join([*cost_tables.proof(cost_report), *cost_tables.notes(cost_report, keys)]),
            err=True,
        )
        return cost_tables.comma_separated(cost_report, keys)
    write = cost_tables.text if as_format == "table" else cost_tables.as_json
    return write(cost_report, keys)
