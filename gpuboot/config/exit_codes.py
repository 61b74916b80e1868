"""How commands end: one table of exit codes, for the `gpuboot` command and for deploys/*.py."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Row:
    """What the codes of one command mean. "": the command does not end so."""

    ok: str
    failed: str = ""
    could_not_tell: str = "could not tell"


# codes that mean the same for every command
COMMON: Mapping[int, str] = {
    NOT_WRITTEN: "all went well, but a file or an answer could not be written: the line on the "
    "screen has its path, the cause and the remedy; a code 1 or 2 is never replaced by it",
    HANGUP: "the terminal was closed (SIGHUP)",
    INTERRUPTED: "Ctrl-C (SIGINT)",
    BROKEN_PIPE: "whoever read the output ended, as `| head` does",
    TERMINATED: "told to end (SIGTERM)",
}

_PROVEN = "proven, or `verify.enabled` is off"
_RUN = Row(
    _PROVEN,
    "an operation failed, a host was lost, the proof failed, or the run may not start",
    "done, and the proof is NOT COVERED (a workload holds a GPU, …), or a host did not tell what "
    "has to be compared",
)
_CHANGED = Row("done", "failed, refused, or only asked for a confirmation")
_ANSWER = Row("answered", "the inventory or the host is wrong")
_PAGE = Row(
    "printed, written, or like the file", "the page differs from the table", "a wrong option"
)
_PRINT_ONLY = Row("printed", "", "a wrong option")

DEPLOYS: Mapping[str, Row] = {
    "site.py": _RUN,
    "standalone.py": _RUN,
    "restore.py": Row(
        _PROVEN,
        f"{_RUN.failed}; or a claim came back without its data",
        f"{_RUN.could_not_tell}; or whether a claim has its data is not known",
    ),
    "verify.py": Row(
        "proven, or answering (level `quick`)", "failed, or it may not start", "not covered"
    ),
    "host_layers.py": Row("done", "failed, or it may not start", "a host did not answer"),
    "check.py": Row("a run may start", "a run may not start", "a host did not answer"),
    "reset.py": _CHANGED,
    "remove.py": _CHANGED,
    "read_hosts.py": _ANSWER,
    "query.py": _ANSWER,
    "outdated.py": _ANSWER,
    "diagnose.py": _ANSWER,
    "load.py": _ANSWER,
    "conformance.py": _ANSWER,
    "remediate.py": _ANSWER,
}

COMMANDS: Mapping[str, Row] = {
    "init": Row("the site's files are written", "something is missing, or nobody can answer"),
    "check": Row("a run may start", "it may not", "a wrong option"),
    "plan": Row(
        "the plan is printed",
        "a run may not start; with `--detailed-exitcode` also: could not tell",
        "could not tell; with `--detailed-exitcode`: something would change",
    ),
    "drift": Row("no drift", "drift"),
    "outdated": Row("nothing newer", "something newer"),
    "query": Row("all numbers are known", "", "at least one is not"),
    "cost": Row("a report that adds up", "", "no report"),
    "profile": Row("the class of every GPU is known", "", "of at least one it is not"),
    "load": Row("done", "a GPU or its program failed", "no GPU was loaded, or could not tell"),
    "conformance": Row("every spec passed", "a spec failed", "no result, or could not tell"),
    "capacity": Row("enough for the lead time", "GPUs have to be ordered"),
    "verify": Row(
        "proven, or answering (level `quick`)",
        "failed, or the inventory is wrong",
        "not covered, could not tell, or not signed",
    ),
    "diagnose": Row(
        "no cause; with `--bundle`: written",
        "causes",
        "no cause, and something could not be looked at; with `--bundle`: could not look",
    ),
    "remediate": Row(
        "no node to look at, or repaired", "some are to be repaired", "could not tell"
    ),
    "report show": Row(
        "the verdict's; with `--check`: signed by one of the signers",
        "the verdict's; with `--check`: changed since, or signed by nobody of them",
        "the verdict's, or could not tell",
    ),
    "report runs": Row("listed", "", "no such run"),
    "report gpus": Row("listed", "", "nothing is known"),
    "autoscaling adapter": _PRINT_ONLY,
    "autoscaling hpa": _PRINT_ONLY,
    "autoscaling keda": _PRINT_ONLY,
    "mirror plan": Row("it can be filled", "something is not to be had"),
    "mirror fill": Row("the mirror is whole", "", "it is not"),
    "mirror check": Row("all is right", "something is missing, altered or of another version"),
    "mirror serve": Row("ended by Ctrl-C or SIGTERM", "", "could not listen"),
    "mirror settings": Row("printed", "", "no mirror that was filled"),
    "docs settings": _PAGE,
    "docs metrics": _PAGE,
    "docs checks": _PAGE,
    "docs causes": _PAGE,
    "docs exit-codes": _PAGE,
    "docs runbooks": _PAGE,
    "docs rules": _PRINT_ONLY,
    "docs versions": _PRINT_ONLY,
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
