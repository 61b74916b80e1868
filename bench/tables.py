"""The tables of docs/performance.md, in Markdown, from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bench.data import SIDES, Data
from bench.matrix import GPUBOOT_ONLY, HOSTS, LAN, MANY, SCENARIOS, Cell
from bench.network import CONDITIONS
from bench.statistics import ENOUGH_RUNS, Summary
from bench.targets import TARGETS

NOT_RUN = "not run"
BY_HOSTS = tuple(Cell("nothing", hosts) for hosts in HOSTS)
BY_NETWORK = tuple(Cell("nothing", 1, network) for network in CONDITIONS)
BY_SCENARIO = tuple(Cell(scenario, 1) for scenario in SCENARIOS)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are figures."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def number(value: float) -> str:
    """Three significant digits, as 0.812, 7.25, 81.3 or 1,240."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 2}f}"


def spread(summary: Summary | None, scale: float = 1.0, runs: int = ENOUGH_RUNS) -> str:
    """`median (least–most)`, with the number of runs where there are fewer than `runs`."""
    if summary is None:
        return NOT_RUN
    if summary.count == runs == 1:
        return f"{number(summary.median / scale)} (one run)"
    median, minimum, maximum = (
        number(v / scale) for v in (summary.median, summary.least, summary.most)
    )
    count_note = "" if summary.count >= runs else f", of {summary.count}"
    return f"{median} ({minimum}–{maximum}{count_note})"


def targets(data: Data) -> str:
    """Each target with what was measured: met, missed or not run."""
    rows = []
    for target in TARGETS:
        value = target.value(data)
        sign, measured = "≥" if target.than else "≤", NOT_RUN
        verdict = NOT_RUN
        if value is not None:
            measured, verdict = f"{number(value)}{target.unit}", "met"
            if not target.is_met(value):
                verdict = "**missed**"
        rows.append([target.text, f"{sign} {target.limit:g}{target.unit}", measured, verdict])
    return table(["nothing to do", "target", "measured", ""], rows)


def seconds(data: Data, cells: Sequence[Cell], label: Callable[[Cell], str], head: str) -> str:
    """Wall time of every side, and how many times gpuboot's the others take."""
    other_sides = [side for side in SIDES if side != "gpuboot"]
    rows = []
    for cell in cells:
        times = [spread(data.summary(cell, side, "seconds")) for side in SIDES]
        ratios = [data.faster(cell, side) for side in other_sides]
        ratio_texts = [f"{number(ratio)}×" if ratio is not None else NOT_RUN for ratio in ratios]
        rows.append([label(cell), *times, *ratio_texts])
    titles = [f"{SIDES[side]} ÷ gpuboot" for side in other_sides]
    return table([head, *(f"{title}, s" for title in SIDES.values()), *titles], rows)


def quantity(data: Data, name: str, unit: str, scale: float, per_host: bool) -> str:
    """A table of a quantity of runs with nothing to do, by number of hosts."""
    rows = [
        [
            _hosts(cell),
            *(
                spread(data.summary(cell, side, name), scale * (cell.hosts if per_host else 1))
                for side in SIDES
            ),
        ]
        for cell in BY_HOSTS
    ]
    return table(["nothing to do", *(f"{title}, {unit}" for title in SIDES.values())], rows)


def coverage(data: Data) -> str:
    """How often each cell was measured."""
    rows = [
        [
            SCENARIOS[scenario] if hosts == HOSTS[0] else "",
            f"{hosts}",
            *(_runs(data.count(Cell(scenario, hosts, network))) for network in CONDITIONS),
        ]
        for scenario in SCENARIOS
        for hosts in HOSTS
    ]
    titles = [condition.title for condition in CONDITIONS.values()]
    return table(["runs of each side", "hosts", *titles], rows)


def links(data: Data) -> str:
    """What ping said of each network before its cells, in the median of them."""
    rows = []
    for name, condition in CONDITIONS.items():
        pings = [
            record
            for record in data.records
            if record["kind"] == "ping" and record["cell"].rpartition("/")[2] == name
        ]
        means = sorted(record["mean_ms"] for record in pings)
        losses = sorted(record["lost_percent"] for record in pings)
        middle = len(pings) // 2
        measured = [f"{means[middle]:.2f}", f"{losses[middle]:.1f}"] if pings else [NOT_RUN] * 2
        rows.append([condition.title, *measured])
    return table(["network", "round trip by ping, ms", "echoes lost, %"], rows)


def by_hosts(data: Data) -> str:
    """Wall time with nothing to do, by number of hosts."""
    return seconds(data, BY_HOSTS, _hosts, "nothing to do")


def by_network(data: Data) -> str:
    """Wall time with nothing to do, by network."""
    return seconds(data, BY_NETWORK, lambda cell: CONDITIONS[cell.network].title, "1 host")


def by_scenario(data: Data) -> str:
    """Wall time by what there is to do."""
    return seconds(
        data, BY_SCENARIO, lambda cell: SCENARIOS[cell.scenario], f"1 host, {CONDITIONS[LAN].title}"
    )


def many(data: Data) -> str:
    """gpuboot by itself on as many real machines as a lab holds."""
    rows = [
        [
            SCENARIOS[cell.scenario],
            *(
                spread(data.summary(cell, "gpuboot", name), scale, runs)
                for name, scale in (
                    ("seconds", 1), ("cpu_s", 1), ("peak_mib", 1), ("commands", MANY),
                )
            ),
        ]
        for cell, runs in GPUBOOT_ONLY.items()
    ]  # fmt: skip
    titles = ("seconds", "CPU of the controller, s", "its memory, MiB", "commands a host")
    return table([f"{MANY} hosts", *titles], rows)


def _hosts(cell: Cell) -> str:
    return f"{cell.hosts} host{'s' if cell.hosts > 1 else ''}"


def _runs(count: int) -> str:
    return str(count) if count else NOT_RUN
