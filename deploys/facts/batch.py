"""Many facts of a host by one command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase
from typing_extensions import override

from deploys.facts.framed import Framed

_MARK = "##gpuboot-fact##"


@dataclass(frozen=True)
class Request:
    """A fact, and the arguments it is asked with."""

    fact: type[Framed[Any]]
    arguments: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, fact: type[FactBase[Any]], arguments: dict[str, Any]) -> Request | None:
        """The request; None for a fact that has to be read by itself.

        That is one without a frame around its output, or with arguments of pyinfra's own (_stdin).
        """
        if not issubclass(fact, Framed) or any(key.startswith("_") for key in arguments):
            return None
        return cls(fact, tuple((key, _hashable(arguments[key])) for key in sorted(arguments)))

    @property
    def command(self) -> str:
        """The fact's own command."""
        return str(self.fact().command(**dict(self.arguments)))


class Unanswered(Exception):
    """A fact's command failed, or its output could not be read."""


class Batch(FactBase[list[Any]]):
    """The answers to requests, in their order; `Unanswered` in the place of one that failed.

    Each command runs in a shell of its own, so that none ends or changes another.
    """

    @staticmethod
    @override
    def default() -> list[Any]:
        return []

    @override
    def command(self, requests: Sequence[Request]) -> str:
        self._requests = requests
        return "\n".join(
            f"( {request.command}\n); printf '\\n{_MARK}%s %s\\n' {number} $?"
            for number, request in enumerate(requests)
        )

    @override
    def process(self, output: list[str]) -> list[Any]:
        answers: list[Any] = []
        lines: list[str] = []
        for line in output:
            noise, mark, text = line.partition(_MARK)
            if not mark:
                lines.append(line)
                continue
            number, _, status = text.partition(" ")
            if number != str(len(answers)):
                raise FactProcessError("the answers are not in the order of the requests")
            answers.append(self._answer(self._requests[len(answers)], [*lines, noise], status))
            lines = []
        return answers

    @staticmethod
    def _answer(request: Request, lines: list[str], status: str) -> Any:
        if status.strip() != "0":
            return Unanswered(f"its command ended with {status.strip()}")
        try:
            return request.fact().process(lines)
        except FactProcessError as error:
            return Unanswered(str(error))


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(item) for item in value)
    return value
