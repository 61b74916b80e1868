"""What a dashboard consists of, as plain data: the tables in this package are written in it.

`gpuboot.monitoring.dashboards.build` turns them into Grafana's model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from gpuboot.monitoring.rules import Requirement

KUBE_STATE_METRICS, POD_LABELS = Requirement.KUBE_STATE_METRICS, Requirement.POD_LABELS
Kind = Literal["timeseries", "stat", "table", "state-timeline", "heatmap", "bargauge"]
# Where a colour begins; the first step begins at minus infinity, which Grafana writes as null.
Steps = tuple[tuple[float | None, str], ...]

GREEN_ABOVE_NONE: Steps = ((None, "text"), (1, "green"))
RED_ABOVE_NONE: Steps = ((None, "green"), (1, "red"))
ORANGE_ABOVE_NONE: Steps = ((None, "green"), (1, "orange"))


@dataclass(frozen=True)
class State:
    """A number that stands for a state. text: what is shown instead of it."""

    value: int
    text: str
    colour: str


@dataclass(frozen=True)
class Query:
    """A PromQL expression of a panel.

    + expr: may hold Grafana's variables ($node, $__rate_interval, …)
    + legend: name of each series, `{{label}}` standing for a label's value
    + requires: what it has no series without
    """

    expr: str
    legend: str = ""
    requires: Requirement = Requirement.NONE


@dataclass(frozen=True)
class Column:
    """A column of a table: an expression's value, or, with `label`, that label's text.

    + link: uid of the dashboard that a click opens, with what the row is about as its variables
    + url: an address outside Grafana that a click opens
    + gauge: a bar from 0 to 1
    + hidden: the expression is there for its labels only
    + requires: what it stays empty without
    """

    title: str
    expr: str = ""
    label: str = ""
    unit: str = "short"
    decimals: int | None = None
    steps: Steps = ()
    states: tuple[State, ...] = ()
    link: str = ""
    url: str = ""
    gauge: bool = False
    hidden: bool = False
    requires: Requirement = Requirement.NONE


@dataclass(frozen=True)
class Panel:
    """A panel.

    + help: how to read it; shown at the panel's title
    + unit: Grafana's id of the values' unit
    + size: width (of 24) and height
    + limit: a line drawn at each threshold
    + empty: what stands in place of "No data"
    + matrix: of a table with one expression: (row label, column label)
    + sort: of a table: column to sort by, highest first; default: its labels, or a matrix's rows,
      in order
    + requires: what all of it stays empty without
    """

    kind: Kind
    title: str
    help: str
    queries: tuple[Query, ...] = ()
    columns: tuple[Column, ...] = ()
    unit: str = "short"
    size: tuple[int, int] = (12, 8)
    decimals: int | None = None
    range: tuple[float | None, float | None] = (None, None)
    steps: Steps = ()
    states: tuple[State, ...] = ()
    stacked: bool = False
    bars: bool = False
    limit: bool = False
    empty: str = ""
    matrix: tuple[str, str] | None = None
    sort: str = ""
    requires: Requirement = Requirement.NONE

    @property
    def expressions(self) -> tuple[str, ...]:
        """All PromQL of the panel, in the order of Grafana's targets."""
        return tuple(q.expr for q in self.queries) + tuple(c.expr for c in self.columns if c.expr)


@dataclass(frozen=True)
class Row:
    """Panels under one heading; they flow from left to right and wrap."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Dashboard:
    """A dashboard.

    + uid: never changes: links and bookmarks hold it
    + variables: names from `gpuboot.monitoring.dashboards.variables`, in the order of their choice
    + alerts: PromQL matchers of the alerts drawn into its graphs, besides our own `component`
    + hidden: variables without a choice: not shown, all values chosen
    + requires: what all of it stays empty without
    """

    uid: str
    title: str
    help: str
    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    alerts: str = ""
    since: str = "now-6h"
    hidden: tuple[str, ...] = ()
    requires: Requirement = Requirement.NONE

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for row in self.rows for panel in row.panels)


def stat(
    title: str,
    help: str,
    expr: str,
    unit: str = "short",
    steps: Steps = (),
    *,
    width: int = 6,
    decimals: int | None = None,
    empty: str = "",
    requires: Requirement = Requirement.NONE,
) -> Panel:
    """A panel with one number."""
    size = (width, 3)
    return Panel(
        "stat",
        title,
        help,
        (Query(expr),),
        unit=unit,
        size=size,
        decimals=decimals,
        steps=steps,
        empty=empty,
        requires=requires,
    )


# what stays empty without kube-state-metrics
kube_query = partial(Query, requires=KUBE_STATE_METRICS)
kube_column = partial(Column, requires=KUBE_STATE_METRICS)
kube_stat = partial(stat, requires=KUBE_STATE_METRICS)


def graph(title: str, help: str, *queries: Query | tuple[str, str], **options: Any) -> Panel:
    """A panel with lines over time.

    + queries: or only the expression and legend of each
    + options: of `Panel`
    """
    all_queries = tuple(item if isinstance(item, Query) else Query(*item) for item in queries)
    return Panel("timeseries", title, help, all_queries, **options)


def by_node(expr: str) -> str:
    """Series of GPUs with the label `GPU`, node and number, which sorts a node's GPUs together."""
    return f'label_join({expr}, "GPU", " GPU ", "node", "gpu")'


def states_expr(base: str, conditions: Sequence[tuple[State, str]], fallback: State) -> str:
    """PromQL whose value is the number of the first state whose condition holds.

    + base: a vector with one series for each thing that has a state
    + conditions: (state, expression with base's labels or fewer that is there when it holds)
    + fallback: the state of what meets no condition
    """
    arms = [f"(0 * ({base}) + {state.value} and {condition})" for state, condition in conditions]
    return "\nor ".join([*arms, f"0 * ({base}) + {fallback.value}"])
