"""What a repair is: its states, what is kept of it on the node, and the cluster that is judged."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, PlainSerializer, TypeAdapter, ValidationError

from gpuboot.cluster.objects import seconds
from gpuboot.cluster.repair_keys import PAST_KEY, STATE_KEY
from gpuboot.config.settings.remediate import Action

State = Literal[
    "observed", "confirmed", "quarantined", "draining", "drained", "repairing", "validating",
    "released", "failed",
]  # fmt: skip
# in these a node carries the taint and takes no pods
OUT: tuple[State, ...] = (
    "quarantined", "draining", "drained", "repairing", "validating", "failed",
)  # fmt: skip
# in these its pods leave, or have left
EMPTIED: tuple[State, ...] = ("draining", "drained", "repairing", "validating", "failed")
_MAX_PAST = 10  # past repairs of a node


# seconds since 1970, in an annotation as Kubernetes writes times
Time = Annotated[
    float, BeforeValidator(lambda value: seconds(value) if isinstance(value, str) else value),
    PlainSerializer(lambda value: stamp(value), when_used="json"),
]  # fmt: skip
T = TypeVar("T")


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
    since: Time
    case_at: Time = 0.0
    action: Action | None = None
    gpus: tuple[str, ...] = ()
    reason: str = ""
    why: str = ""
    boot: str = ""
    cordoned: bool = False
    note: str = ""
    tried: Time = 0.0
    bundle: str = ""
    before: State | None = None
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Past:
    """A repair that ended. + case_at: as of `Repair`; at: when it ended; end: how"""

    case_at: Time
    at: Time
    action: Action | None = None
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


_REPAIR, _PAST = TypeAdapter(Repair), TypeAdapter(tuple[Past, ...])


def dump(repair: Repair) -> str:
    """The annotation of a repair."""
    return _REPAIR.dump_json(repair, exclude_defaults=True).decode()


def dump_past(past: tuple[Past, ...]) -> str:
    """The annotation of the last earlier repairs."""
    return _PAST.dump_json(past[-_MAX_PAST:], exclude_defaults=True).decode()


def load(text: str) -> Repair:
    """The inverse of `dump`. Raises `AnnotationError`."""
    return _loaded(_REPAIR, STATE_KEY, text)


def load_past(text: str) -> tuple[Past, ...]:
    """The inverse of `dump_past`. Raises `AnnotationError`."""
    return _loaded(_PAST, PAST_KEY, text)


def _loaded(adapter: TypeAdapter[T], key: str, text: str) -> T:
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        parts = filter(None, [f"annotation {key}", place, problem["msg"]])
        raise AnnotationError(": ".join(parts)) from None
