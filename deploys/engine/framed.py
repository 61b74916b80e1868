"""Facts that know their own lines, whatever else a host's shell prints."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any, ClassVar, TypeVar

from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase

from deploys.engine.shell import warn_of_noise
from gpuboot.hosts.fact_output import FactOutputError, answer, framed
from gpuboot.plan.model import HIDDEN

T = TypeVar("T")


class Framed(FactBase[T]):
    """A fact whose command runs in a frame: `process` gets what the command itself printed.

    Facts define `command` (one string) and `process` as ever, or `parse`; no line: the fact's
    default. What that cannot read (ValueError, KeyError, …) fails the fact.

    + parse: the function from those lines to the answer, where that is all that `process` does

    + of_cluster: it tells of the cluster, which every host and the cluster itself change
    + of_plan: it is read only to show a difference that has been found
    """

    abstract = True
    parse: ClassVar[Callable[[list[str]], Any]]
    of_cluster: ClassVar[bool] = False
    of_plan: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "command" in cls.__dict__:
            cls.command = _in_frame(cls.__dict__["command"])
        process = cls.__dict__.get("process")
        if parse := cls.__dict__.get("parse"):
            process = _parsed(parse)
        if process:
            cls.process = _own_lines(process)  # type: ignore[method-assign]
        super().__init_subclass__()

    @classmethod
    def merged(
        cls, arguments: Sequence[Mapping[str, Any]]
    ) -> tuple[type[Framed[Any]], dict[str, Any]] | None:
        """The fact, and its arguments, that answers all of these at once.

        + arguments: arguments of several readings of this fact

        None: each of them is a command of its own.
        """
        return None

    @classmethod
    def part(cls, combined: Any, arguments: Mapping[str, Any]) -> T:
        """What of the answer to such a fact belongs to one of them."""
        raise NotImplementedError

    def bare_command(self, arguments: Mapping[str, Any]) -> str:
        """The command without its frame."""
        bare: Callable[..., str] = inspect.unwrap(type(self).command)
        return bare(self, **arguments)

    def value(self, lines: list[str]) -> T:
        """What the command's own lines say. Raises `FactProcessError`."""
        return _value(self, inspect.unwrap(type(self).process), lines)


class HiddenInput(list[str]):
    """Standard input of a fact. With -v pyinfra logs the arguments of facts, this one as well."""

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__


def _in_frame(command: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(command)
    def in_frame(*args: Any, **kwargs: Any) -> str:
        return framed(command(*args, **kwargs))

    # pyinfra looks at the names of a fact's arguments, and not behind a wrapper
    in_frame.__signature__ = inspect.signature(command)  # type: ignore[attr-defined]
    return in_frame


def _parsed(parse: Callable[[list[str]], T]) -> Callable[..., T]:
    return lambda fact, output: parse(output)


def _own_lines(process: Callable[..., T]) -> Callable[..., T]:
    @functools.wraps(process)
    def own_lines(self: FactBase[T], output: list[str]) -> T:
        try:
            parsed = answer(output)
        except FactOutputError as error:
            raise FactProcessError(str(error)) from error
        warn_of_noise(parsed.noise)
        return _value(self, process, parsed.lines)

    return own_lines


def _value(fact: FactBase[T], process: Callable[..., T], lines: list[str]) -> T:
    try:
        return process(fact, lines) if lines else fact.default()
    except FactOutputError as error:
        raise FactProcessError(str(error)) from error
    except (ValueError, LookupError, TypeError) as error:
        raise FactProcessError(f"the host's answer cannot be read: {error}") from error


@functools.cache
def _text(path: str) -> str:
    return resources.files("deploys.parts").joinpath(path).read_text()


def script(path: str, /, **variables: str) -> str:
    """A script of deploys/parts/, behind the shell variables that it reads.

    + path: below that folder
    """
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
    return head + _text(path)


class OneLine(Framed[str]):
    """The first line that a command prints, without surrounding blanks; "" for no output."""

    abstract = True

    @staticmethod
    def default() -> str:
        return ""

    def process(self, output: list[str]) -> str:
        return output[0].strip()
