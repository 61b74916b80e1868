"""How commands end: one set of exit codes, for the `gpuboot` command and for deploys/*.py.

What they mean for each: `gpuboot/docs/exit_codes.toml`.
"""

from collections.abc import Iterable, Mapping

OK = 0
FAILED = 1
COULD_NOT_TELL = 2
NOT_WRITTEN = 3
HANGUP = 129
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143

BY_SIGNAL = frozenset({HANGUP, INTERRUPTED, TERMINATED})
COMPLETED_CODES = frozenset({OK, COULD_NOT_TELL, NOT_WRITTEN})  # of a run: no operation failed

VERDICTS: Mapping[str, int] = {
    "proven": OK,
    "answering": OK,
    "failed": FAILED,
    "not_covered": COULD_NOT_TELL,
}


def exit_code(verdict: str) -> int:
    """0 proven or answering, 1 failed, 2 not covered or could not tell."""
    return VERDICTS[verdict]


def worst(codes: Iterable[int]) -> int:
    """What is failed before what is not known, and that before what is well."""
    order = (FAILED, COULD_NOT_TELL, OK)
    return min(codes, key=order.index, default=OK)


def with_unwritten(code: int, unwritten: bool) -> int:
    """A command's code, where something could not be written as well."""
    return NOT_WRITTEN if unwritten and code == OK else code
