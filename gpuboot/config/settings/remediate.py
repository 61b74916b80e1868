"""Settings of repairs: what `gpuboot remediate` may do, to how many nodes, and when."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from gpuboot.config.settings.base import Form, Model

Action = Literal["reset", "reboot", "manual"]
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY, _TIME = f"({'|'.join(_DAYS)})", r"([01]\d|2[0-3]):[0-5]\d"
Window = Annotated[
    str,
    Form(rf"({_DAY}(-{_DAY})? )?{_TIME}-{_TIME}", "a window of time in UTC", "Mon-Fri 22:00-06:00"),
]
Share = (
    Annotated[int, Field(ge=1)]
    | Annotated[str, Form(r"(100|[1-9]?\d)%", "a number of nodes, or a share of them", "10%")]
)


class Remediate(Model):
    """Repairs of GPU nodes by `gpuboot remediate`, which without `--act` only tells what it
    would do (docs/remediate.md)."""

    actions: tuple[Action, ...] = Field(
        ("reset", "reboot", "manual"),
        description="What may be done: reset a GPU, reboot its node, or drain the node and hand it "
        "over to a person.",
    )
    max_nodes: Share = Field(
        1,
        description="How many GPU nodes may be out of service for a repair at a time, those that "
        'wait for a person included: a number, or a share such as `"10%"`, rounded down, but at '
        "least one.",
    )
    min_healthy_percent: int = Field(
        50,
        ge=0,
        le=100,
        description="Of the GPUs of a model so many percent stay offered to pods while a node is "
        "out of service.",
    )
    confirm_s: int = Field(
        120, ge=0, description="How long signals have to be there before a repair begins."
    )
    breaker_share: Share = Field(
        "50%",
        description="The breaker opens when so many GPU nodes, and at least two, ask for a repair "
        "within `remediate.breaker_window_s`: what hits many at once is no GPU's fault. A person "
        "closes it.",
    )
    breaker_window_s: int = Field(900, ge=1, description="See `remediate.breaker_share`.")
    cooldown_h: int = Field(24, ge=0, description="Hours between two repairs of a node.")
    max_repairs: int = Field(
        2,
        ge=1,
        description="Repairs of a node in seven days. One that needs more is taken out of service "
        "and left to a person.",
    )
    retry_s: int = Field(
        600,
        ge=0,
        description="How long a node whose pods could not be moved away waits for the next try.",
    )
    windows: tuple[Window, ...] = Field(
        (),
        description="When repairs may begin, in UTC, such as `Mon-Fri 22:00-06:00` or "
        "`02:00-04:00`. Default: at any time.",
    )
    watch_s: int = Field(
        3600, ge=0, description="How long a node is watched after it came back into service."
    )


def within(windows: tuple[str, ...], now: float) -> bool:
    """Whether a time is in one of these windows, or there are none. + now: seconds since 1970"""
    return not windows or any(_in(window, now) for window in windows)


def _in(window: str, now: float) -> bool:
    """A window that ends before it begins ends on the next day."""
    days, _, times = window.rpartition(" ")
    begin, end = times.split("-")
    moment = datetime.fromtimestamp(now, UTC)
    clock, today = moment.strftime("%H:%M"), moment.weekday()
    if begin < end:
        return begin <= clock < end and _on(days, today)
    return (clock >= begin and _on(days, today)) or (clock < end and _on(days, (today - 1) % 7))


def _on(days: str, day: int) -> bool:
    if not days:
        return True
    first, _, last = days.partition("-")
    start, stop = _DAYS.index(first), _DAYS.index(last or first)
    return start <= day <= stop if start <= stop else day >= start or day <= stop
