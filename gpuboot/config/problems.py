"""What a person must hear about: one problem, where it is, why, and what to do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """Something that keeps a run from starting.

    + host: inventory name of the host, or "" when it concerns the whole inventory
    + cause: what is wrong, with the value that was found
    + remedy: what the person can do about it
    """

    host: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        scope = self.host or "inventory"
        return f"[{scope}] {self.cause}\n    remedy: {self.remedy}"


def render(problems: Iterable[Problem], untouched: str = "nothing was changed") -> str:
    """All problems as one text for a terminal, sorted by host.

    + problems: what was found; must not be empty
    + untouched: what the problems kept from happening
    """
    unique_problems = sorted(set(problems))
    noun = "problem" if len(unique_problems) == 1 else "problems"
    return "\n".join([f"{len(unique_problems)} {noun}; {untouched}", *map(str, unique_problems)])


def join_first(texts: Sequence[str], limit: int, separator: str = "; ") -> str:
    """Texts in one line, and how many more there are than these."""
    suffix = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return separator.join(texts[:limit]) + suffix
