"""The deploy files of deploys/, by what they do."""

import os
import sys

from pyinfra.api.state import StateStage
from pyinfra.context import ctx_state, state

from deploys.engine import time_notes

# they go on without a host that does not answer: preflight or verification tells of it
TELLING = (
    "site.py", "host_layers.py", "standalone.py", "verify.py", "query.py", "check.py",
    "read_hosts.py", "remove.py", "restore.py", "outdated.py", "diagnose.py", "load.py",
    "remediate.py", "conformance.py",
)  # fmt: skip
# they show a plan before they run, and what happens while they do
PLANNED = (
    "site.py", "host_layers.py", "standalone.py", "reset.py", "remove.py", "restore.py",
    "verify.py", "query.py",
)  # fmt: skip
# they change nothing, so they stop for no other run; remediate.py asks by itself where it acts
READ_ONLY = (
    "verify.py", "query.py", "check.py", "read_hosts.py", "outdated.py", "diagnose.py", "load.py",
    "remediate.py",
)  # fmt: skip
# the one deploy whose inventory says only how to log in
READING = "read_hosts.py"
# done by the leader alone, whichever control plane that is; it reaches hosts that `--limit` names
LED = ("remove.py", "restore.py", "remediate.py")
limited: list[str] = []  # those, by inventory name


def remains() -> str:
    """What a run leaves that a signal ends, as one line."""
    retry_hint = "run it again"
    if set(time_notes.deploy.split()) & {"verify.py", "load.py", "conformance.py"}:
        return f"interrupted: its pods end by themselves within a minute; {retry_hint}"
    is_prepared = bool(ctx_state.isset())  # type: ignore[no-untyped-call]
    executing = is_prepared and state.current_stage >= StateStage.Execute
    if executing and (may_change() or os.environ.get("GPUBOOT_ACT")):
        return f"interrupted: what it did stays; {retry_hint}: it goes on"
    return f"interrupted: nothing was changed; {retry_hint}"


def may_change() -> bool:
    """Whether this run may change something, so that no other one may do so at the same time."""
    return bool(set(time_notes.deploy.split()) - set(READ_ONLY)) and "--dry" not in sys.argv
