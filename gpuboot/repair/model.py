"""What a repair is: its states, what is kept of it on the node, and the cluster that is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from gpuboot.cluster.repair_keys import PAST_KEY, STATE_KEY
from gpuboot.config.settings.remediate import Action

State = Literal[
    "observed", "confirmed", "quarantined", "draining", "drained", "repairing", "validating",
    "released", "failed",
]  # fmt: skip
STATES: tuple[State, ...] = get_args(State)
# in these a node carries the taint and takes no pods
OUT: tuple[State, ...] = (
    "quarantined", "draining", "drained", "repairing", "validating", "failed",
)  # fmt: skip
# in these its pods leave, or have left
EMPTIED: tuple[State, ...] = ("draining", "drained", "repairing", "validating", "failed")
_MAX_PAST = 10  # past repairs of a node


class AnnotationError(ValueError):
    """An annotation is not what gpuboot writes: somebody edited it."""


@dataclass(frozen=True, kw_only=True)
class Repair:
    """The repair of one node, as its annotation holds it. Times: seconds since 1970.

    + since: when it came to this state
    + case_at: when its signals began to be enough for a repair; 0: they are not
    + action: what is to be done; None: not decided
    + gpus: UUIDs it is about; none: the node as a whole
    + reason: value of the taint, e.g. `xid-79`; why: for a person
    + boot: id of the boot in which a repair began
    + cordoned: gpuboot cordoned the node, so gpuboot may end that
    + note: what the last step said
    + tried: when moving its pods away last failed; 0: it did not
    + bundle: where what a person needs of it was written, as `machine:path`
    + before, said: the state before the last step, and that step's reason
    """

    state: State
    since: float
    case_at: float = 0.0
    action: Action | None = None
    gpus: tuple[str, ...] = ()
    reason: str = ""
    why: str = ""
    boot: str = ""
    cordoned: bool = False
    note: str = ""
    tried: float = 0.0
    bundle: str = ""
    before: State | None = None
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Past:
    """A repair that ended. + case_at: as of `Repair`; at: when it ended; end: how"""

    case_at: float
    at: float
    action: Action | None
    end: Literal["released", "cancelled"]
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class GpuNode:
    """A node with GPUs.

    + pool: its GPU model, or ""
    + capacity, allocatable: GPUs and MIG devices that the kubelet knows, and offers
    + boot: id of the boot that its kubelet reports
    + tainted: it carries the taint of a quarantine
    + error: why its annotation cannot be read; "" when it can
    """

    name: str
    pool: str = ""
    capacity: int = 0
    allocatable: int = 0
    ready: bool = True
    cordoned: bool = False
    control_plane: bool = False
    opted_out: bool = False
    tainted: bool = False
    boot: str = ""
    repair: Repair | None = None
    past: tuple[Past, ...] = ()
    error: str = ""

    @property
    def state(self) -> State | None:
        return self.repair.state if self.repair else None

    @property
    def out(self) -> bool:
        """Whether it is out of service for a repair, be it gpuboot's or a person's."""
        return self.tainted or self.state in OUT


@dataclass(frozen=True)
class Breaker:
    """Whether the breaker is open: then no repair begins.

    + opened: when it opened, or 0; cause: for a person
    """

    opened: float = 0.0
    cause: str = ""


def stamp(seconds: float) -> str:
    """A time as Kubernetes writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """The inverse of `stamp`. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp()


_TIMES = ("since", "case_at", "at", "tried")


def _plain(item: Repair | Past) -> dict[str, Any]:
    """What says something of it, as JSON has it."""
    return {
        key: stamp(value) if key in _TIMES else value
        for key, value in asdict(item).items()
        if value
    }


def dump(repair: Repair) -> str:
    """The annotation of a repair."""
    return json.dumps(_plain(repair))


def dump_past(past: tuple[Past, ...]) -> str:
    """The annotation of the last earlier repairs."""
    return json.dumps([_plain(item) for item in past[-_MAX_PAST:]])


def load(text: str) -> Repair:
    """The inverse of `dump`. Raises `AnnotationError`."""
    data = _checked(text, STATE_KEY, dict)
    try:
        repair = Repair(**_typed(Repair, data))
    except (TypeError, ValueError) as error:
        raise AnnotationError(f"annotation {STATE_KEY}: {error}") from None
    if repair.state not in STATES or repair.action not in (None, *get_args(Action)):
        raise AnnotationError(f"annotation {STATE_KEY}: {repair.state}, {repair.action}")
    return repair


def load_past(text: str) -> tuple[Past, ...]:
    """The inverse of `dump_past`. Raises `AnnotationError`."""
    try:
        items = _checked(text, PAST_KEY, list)
        return tuple(Past(**({"action": None} | _typed(Past, item))) for item in items)
    except (TypeError, ValueError, AttributeError) as error:
        raise AnnotationError(f"annotation {PAST_KEY}: {error}") from None


def _checked(text: str, key: str, kind: type) -> Any:
    try:
        data = json.loads(text)
    except ValueError:
        raise AnnotationError(f"annotation {key} is no JSON") from None
    if not isinstance(data, kind):
        raise AnnotationError(f"annotation {key} is no JSON {kind.__name__}")
    return data


def _typed(kind: type[Repair] | type[Past], data: Mapping[str, Any]) -> dict[str, Any]:
    field_names = {field.name for field in fields(kind)}
    values = {key: value for key, value in data.items() if key in field_names}
    times = {key: seconds(values[key]) for key in _TIMES if key in values}
    gpus = {"gpus": tuple(values["gpus"])} if "gpus" in values else {}
    return values | times | gpus
