"""`run.json` and `run.html`: what a run changed, how long each phase took, and how it ended.

A pyinfra callback handler notes operations as they run. The files are written after each of them
and once more when the process ends, so a run that is killed has left them too: they say how far
the run came, with exit 1. A run that executed nothing writes none.
"""

from __future__ import annotations

import atexit
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyinfra.api.host import Host
from pyinfra.api.state import BaseStateCallback, State

from deploys.engine import changes, compare, run_record, spans, time_notes
from deploys.engine import run_ending as ending
from deploys.engine.failure_messages import message
from deploys.engine.run_record import folder
from deploys.engine.time_notes import Operation
from deploys.run.plan import title
from gpuboot.config import versions
from gpuboot.config.settings import Settings
from gpuboot.plan.model import items_json
from gpuboot.verify.report.run import last_lines, run_html
from gpuboot.verify.report.run_failures import Failure, masked
from gpuboot.verify.report.timeline.table import phases_json
from gpuboot.verify.report.writer import write_atomically, write_json

SCHEMA = 2

_WRITE_S = 2.0  # between two writes while nothing changes
_WRITE_SHARE = 20  # and at least so many times what a write takes: many hosts make long notes

verbose = False  # tell all that is known at the end
resume = ""  # the command that goes on where this run stops; "" where pyinfra tells the results

_recorder: Recorder | None = None


def watch(state: State, settings: Settings) -> None:
    """Note what this run does, and write it down at its end. Calls after the first do nothing.

    Nor do those of a deploy that is only compared.
    """
    global _recorder
    if compare.collecting() or (_recorder is not None and _recorder.state is state):
        return
    run_record.record = _recorder = Recorder(state, settings)
    state.add_callback_handler(_recorder)  # type: ignore[no-untyped-call]
    atexit.register(_recorder.close)


def close() -> None:
    """Close this run's recorder, see `Recorder.close`."""
    if _recorder is not None:
        _recorder.close()


@dataclass
class Recorder(BaseStateCallback):
    """The notes of one run."""

    state: State
    settings: Settings
    operations: dict[str, Operation] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    proof: str = ""  # the operation that verified
    proof_parts: Mapping[str, float] = field(default_factory=dict)
    retried: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    unreachable: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    versions: dict[str, Any] = field(init=False)
    started: datetime = field(default_factory=time_notes.started)
    written_at: float = 0.0  # when, and how long it took
    writing_s: float = 0.0
    closed: bool = False

    def __post_init__(self) -> None:
        time_notes.prepare()
        for host in self.state.inventory:
            spans.count_commands(host)
        self.versions = versions.lock(self.settings).model_dump(mode="json")

    def host_connect_error(self, state: State, host: Host, error: Any) -> None:  # type: ignore[override]
        self.unreachable[host.name] = str(error)

    def host_connect(self, state: State, host: Host) -> None:  # type: ignore[override]
        """Forget a host's failures of connection: it is back, as after a reboot."""
        self.unreachable.pop(host.name, None)

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        time_notes.prepared()
        phase, name = title(state, op_hash)
        self.operations[op_hash] = Operation(phase, name, spans.begin(name, operation=op_hash))

    def operation_end(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        if op_hash in self.operations:
            spans.end(self.operations[op_hash].span)
        for host in state.failed_hosts:
            self._forget(host)
        self._write_meanwhile(op_hash)

    def _write_meanwhile(self, op_hash: str) -> None:
        """Write what a run that is killed has to leave, unless it is much the same as before.

        Of what ended well `close` writes at once: drawing it twice would cost a quick run most.
        """
        since = time.monotonic() - self.written_at
        is_notable = any(op_hash in of_host for of_host in self.failed.values()) or any(
            self._did_change(host, op_hash) for host in self.state.inventory
        )
        due = since > self.writing_s * _WRITE_SHARE and (is_notable or since > _WRITE_S)
        if due and not self._is_done():
            self.write()

    def _forget(self, host: Host) -> None:
        """Drop errors of what a failed host never began: one cause, one error.

        pyinfra's table of results counts every operation that did not succeed.
        """
        planned = self.state.ops[host]
        for op_hash in [
            op for op, operation in planned.items() if not operation.operation_meta.is_complete()
        ]:
            self.dropped[host.name].append(op_hash)
            del planned[op_hash]

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        if op_hash in self.operations:
            self.operations[op_hash].end_on(host.name)
        # the operation's own result is marked complete only after this call
        if op_hash in state.ops[host]:
            self.changed[host.name].append(op_hash)

    def operation_host_error(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0, max_retries: int = 0
    ) -> None:
        if op_hash in self.operations:
            self.operations[op_hash].end_on(host.name)
        self.failed[host.name].append(op_hash)

    def operation_host_retry(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_num: int, max_retries: int
    ) -> None:
        self.retried[host.name] += 1
        changes.forget(host, op_hash)

    def operation_host_start(self, state: State, host: Host, op_hash: str) -> None:  # type: ignore[override]
        changes.forget(host, op_hash)
        if op_hash in self.operations and op_hash in state.ops[host]:
            self.operations[op_hash].begin_on(host.name)

    def write(self) -> None:
        """Write run.json and run.html, unless nothing was executed."""
        started = time.monotonic()
        if self._executed():
            run, place = self.to_json(), folder(self.settings)
            with ending.writing(Path(self.settings.verify.reports)):
                write_json(place / "run.json", run)
                page = run_html(run, (place / "verify.html").exists())
                write_atomically(place / "run.html", page)
            self.written_at = time.monotonic()
            self.writing_s = self.written_at - started

    def close(self) -> None:
        """Write for the last time; of a run that failed, tell what failed, and where it stands."""
        if self.closed or not self._executed():
            return
        self.closed = True
        run = self.to_json()
        if lines := last_lines(run, resume, verbose):
            print("\n".join(["", *lines]), file=sys.stderr, flush=True)
        self.write()
        if lines and not ending.missing:
            print(f"report: {folder(self.settings)}/run.html", file=sys.stderr, flush=True)
        ending.tell_missing()

    def to_json(self) -> dict[str, Any]:
        """The notes as run.json has them; docs/reports.md documents the schema."""
        times = {
            "operations": [self._operation(op) for op in self.operations],
            "spans": time_notes.spans_json(self.operations),
            "seconds": time_notes.elapsed(),
        }
        return {
            "schema": SCHEMA,
            "gpuboot": version("gpuboot"),
            "pyinfra": version("pyinfra"),
            "cluster": self.settings.cluster.name,
            "deploy": time_notes.deploy,
            "started": f"{self.started:%Y-%m-%dT%H:%M:%SZ}",
            "seconds": times["seconds"],
            "exit": ending.code(not self._is_done()),
            "shortfalls": list(ending.shortfalls),
            "unchanged_operations": compare.left_out(),
            "phases": phases_json(times),
            "operations": times["operations"],
            "spans": times["spans"],
            "hosts": {
                host.name: {
                    "seconds": round(spans.busy[host.name], 3),
                    "commands": spans.commands[host.name],
                    "files": spans.files[host.name],
                    "changed": self._changes(host),
                    "failed": [item.operation for item in self.errors(host.name)],
                    "errors": [asdict(item) for item in self.errors(host.name)],
                    "retries": self.retried.get(host.name, 0),
                    "not_tried": self._not_tried(host),
                }
                for host in self.state.inventory
            },
            "versions": self.versions,
        }

    def proved(self, operation: str, parts: Mapping[str, float]) -> None:
        """Note that an operation has shown its own report, see `Record` of run_record.py."""
        self.proof, self.proof_parts = operation, parts

    def failures(self) -> dict[str, Failure]:
        """Inventory name of each host that has failed -> what failed there first."""
        return {name: errors[0] for name in self.failed if (errors := self.errors(name))}

    def errors(self, host: str) -> list[Failure]:
        """What failed on a host, in order; a lost connection comes first."""
        connection_failures = (
            [Failure("Connect", self.unreachable[host])] if host in self.unreachable else []
        )
        return connection_failures + [
            Failure(self._name(op), masked(message(self.state, host, op)))
            for op in self.failed.get(host, [])
        ]

    def _executed(self) -> bool:
        """Whether the run came to its operations; all of them may have had nothing to do."""
        return bool(self.operations) or (self.state.is_executing and not self.state.op_meta)

    def _is_done(self) -> bool:
        """Whether every operation ended and no host was lost on the way."""
        expected = set(self.state.op_meta)
        completed = {op for op, item in self.operations.items() if item.has_ended}
        return expected <= completed and not (
            self.failed or self.unreachable or self.state.failed_hosts
        )

    def _operation(self, op_hash: str) -> dict[str, Any]:
        """An operation, its times, and what it recorded on each host that it changed."""
        return {
            **time_notes.operation_json(op_hash, self.operations[op_hash]),
            **({"parts": dict(self.proof_parts)} if op_hash == self.proof else {}),
            "changed": {
                host.name: items_json(changes.recorded(host.name, op_hash))
                for host in self.state.inventory
                if self._did_change(host, op_hash)
            },
        }

    def _did_change(self, host: Host, op_hash: str) -> bool:
        planned = self.state.ops[host].get(op_hash)
        if planned is None or op_hash not in self.changed.get(host.name, ()):
            return False
        return planned.operation_meta.is_complete() and planned.operation_meta.did_change()

    def _not_tried(self, host: Host) -> list[str]:
        """Operations that were prepared for a host and have not begun there, in order."""
        ops = {
            op
            for op, operation in self.state.ops[host].items()
            if not operation.operation_meta.is_complete()
        }
        ops |= set(self.dropped.get(host.name, ()))
        ops -= set(self.failed.get(host.name, ()))
        order = self.state.get_op_order() if ops else []  # type: ignore[no-untyped-call]
        return [" | ".join(dict.fromkeys(title(self.state, op))) for op in order if op in ops]

    def _changes(self, host: Host) -> list[str]:
        return [
            self._name(op) for op in self.changed.get(host.name, []) if self._did_change(host, op)
        ]

    def _name(self, op_hash: str) -> str:
        item = self.operations.get(op_hash)
        if item is None:
            return op_hash
        return item.name if item.name == item.phase else f"{item.phase} | {item.name}"
