"""Operations as gpuboot has them: pyinfra's, which a run calls only where there is something to do.

Without a comparison (deploys/engine/compare.py) they are pyinfra's operations and nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from pyinfra.api.arguments_typed import PyinfraOperation
from pyinfra.api.deploy import deploy
from pyinfra.api.operation import OperationMeta
from pyinfra.api.operation import operation as pyinfra_operation
from pyinfra.context import host, state

from deploys.engine import answers

P = ParamSpec("P")
T = TypeVar("T")
Body = Callable[P, Generator[Any, None, None]]


class Comparison(Protocol):
    """Decides in a run which operations are called."""

    def note(
        self, body: Body[Any] | None, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> bool:
        """Compare an operation with the current host later on; False when it is time to run it.

        + body: the operation's own function; None: it always has something to do
        """

    def collecting(self) -> bool:
        """Whether the deploy is called only for what its operations are."""

    def within(self, phase: str) -> AbstractContextManager[None]:
        """Count the operations that are called in the block as a phase's."""

    def idle(self, phase: str) -> bool:
        """Whether no operation of a phase has anything to do on the current host."""

    def place(self, name: str) -> int | None:
        """Where the operation that is called now stands among those of its host.

        None when it has nothing to do.
        """


comparison: Comparison | None = None  # of this run


def operation(
    is_idempotent: bool = True, compared: bool = True
) -> Callable[[Body[P]], PyinfraOperation[P]]:
    """Decorate an operation's function, as pyinfra's `operation` does.

    + compared: False for one that always has something to do
    """

    def decorator(body: Body[P]) -> PyinfraOperation[P]:
        wrapped: Any = pyinfra_operation(is_idempotent=is_idempotent)(body)

        @functools.wraps(body)
        def call(*args: Any, **kwargs: Any) -> OperationMeta:
            place: int | None = 0
            function = wrapped
            if comparison is not None:
                name = str(kwargs.get("name", body.__name__))
                is_noted = comparison.note(body if compared else None, name, args, kwargs)
                place = None if is_noted else comparison.place(name)
                if place is None:
                    return OperationMeta("", is_change=False)
                function = pyinfra_operation(is_idempotent=is_idempotent)(_watched(body, place))
            meta: OperationMeta = function(*args, **kwargs)
            return meta

        call._inner = body  # type: ignore[attr-defined]
        return cast(PyinfraOperation[P], call)

    return decorator


def phase(name: str) -> Callable[[Callable[P, None]], PyinfraOperation[P]]:
    """Decorate a phase, as pyinfra's `deploy` does: its operations' names begin with its name.

    It is not called for a host on which the comparison leaves nothing of it.
    """

    def decorator(function: Callable[P, None]) -> PyinfraOperation[P]:
        wrapped: Any = deploy(name)(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> None:
            if comparison is not None and comparison.collecting():
                with comparison.within(name):
                    function(*args, **kwargs)
            elif comparison is None or not comparison.idle(name):
                wrapped(*args, **kwargs)

        call._inner = function  # type: ignore[attr-defined]
        return cast(PyinfraOperation[P], call)

    return decorator


def loop(items: Iterable[T]) -> Iterator[T]:
    """A loop for operations that several hosts take part in.

    pyinfra tells those of other loops apart by how many a host has called: one that is not called
    for the first, which have nothing to do there, would have its own executed together with them.
    """
    yield from host.loop(items)  # type: ignore[no-untyped-call]


def _watched(body: Body[Any], place: int) -> Body[Any]:
    """The same operation, which forgets the host's answers whenever a command runs on it."""

    @functools.wraps(body)
    def watched(*args: Any, **kwargs: Any) -> Generator[Any, None, None]:
        if not state.is_executing:
            # pyinfra stops at the first command: the changes that follow belong to the plan as well
            yield from list(body(*args, **kwargs))
            return
        answers.reached(host, place)
        with closing(body(*args, **kwargs)) as commands:
            for command in commands:
                answers.forget(host)
                yield command
                answers.forget(host)

    return watched
