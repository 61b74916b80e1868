"""What a run shows: the plan before it, and while it runs only what happens.

pyinfra prints a line for every operation and every host, and a table before and after. It has
callbacks for operations, which tell the phases here; a filter on its logger leaves out lines that
say that nothing happened; its two tables have no hook, so functions of ours stand in their place
(docs/upstream.md). With -v all of it stays as pyinfra prints it.
"""

import json
import logging
import os
import re
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import gevent
import pyinfra_cli.cli
from pyinfra import logger
from pyinfra.api.host import Host
from pyinfra.api.state import BaseStateCallback, State

from deploys.engine import changes, compare
from deploys.run import report
from deploys.run.plan import build, title
from gpuboot.plan import POINTER, Change
from gpuboot.plan.terminal import change_lines, show

_SLOW_S = 3.0  # an operation that takes longer is named while it runs
_MAX_CHANGES = 6  # changes of an operation that are told when it has made them
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_IDLE = re.compile(r"^\[.*\] +(No changes( on retry \d+)?|Skipped)$")
_COUNT = re.compile(r"^\[.*\] +Error: executed \d+ commands?$")  # below what went wrong
_SUCCESS = re.compile(r"^\[.*\] +Success")
_STEPS = re.compile(r"^\[.*\] +(Connected|Ready: .*)$|^Loading: ")
_HEADLINES = (
    "--> Loading inventory...",
    "--> Detected changes:",
    "--> Skipping change detection",
    "--> Beginning operation run...",
    "--> Results:",
    "--> Disconnecting from hosts...",
)
_FOOTNOTE = "\n    Detected changes may not include"


class Screen(BaseStateCallback, logging.Filter):
    """Names an operation once something happens in it, and sums a phase up in one line."""

    def __init__(self) -> None:
        logging.Filter.__init__(self)
        self.header = ""  # of the operation that runs, until it is shown
        self.phase = ""
        self.operations = self.changed = self.failed = 0
        self.started = 0.0
        self.happened = self.has_work = self.has_header = False
        self.shown_lines: set[tuple[str, ...]] = set()
        self.timer: Any = None
        self.compared = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line of pyinfra's is shown; names its operation first."""
        text = _COLOURS.sub("", record.getMessage()).strip()
        if record.levelno < logging.WARNING:
            if text.startswith(_HEADLINES) or _IDLE.match(text) or _STEPS.match(text):
                return False
            if text.startswith("--> Starting"):
                return False
        elif _COUNT.match(text) and not self.header:
            return False
        self.happened = self.happened or bool(_SUCCESS.match(text))
        self.show_header()
        return True

    def show_header(self) -> None:
        """Name the operation that runs, unless that is done."""
        header, self.header = self.header, ""
        self.has_header = self.has_header or bool(header)
        if header:
            _say(f"--> {header}")

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        # after a failure nobody may be left who would take part in it
        self.has_work = any(op_hash in state.ops[host] for host in state.active_hosts)
        if not self.has_work:
            return
        phase, name = title(state, op_hash)
        self.show_comparison()
        if phase != self.phase:
            self.end_phase()
            self.phase, self.started, self.has_header = phase, time.monotonic(), False
        self.header = f"{phase} | {name}"
        self.happened, self.shown_lines = False, set()
        self.timer = gevent.spawn_later(_SLOW_S, self.show_header)

    def show_comparison(self) -> None:
        """Say, before the first operation, how many others have nothing to do."""
        if not self.compared and (count := compare.left_out()):
            noun = "operation has" if count == 1 else "operations have"
            _say(f"{count} {noun} nothing to change on any host")
        self.compared = True

    def operation_end(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        if not self.has_work:
            return
        self.timer.kill()
        self.header = ""
        self.operations += 1
        self.changed += self.happened

    def operation_host_error(  # type: ignore[override]
        self,
        state: State,
        host: Host,
        op_hash: str,
        retry_count: int = 0,
        max_retries: int = 0,
    ) -> None:
        self.failed += 1

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        items = [
            item
            for item in changes.executed.get((host.name, op_hash), ())
            if isinstance(item, Change)
        ]
        lines = tuple(line for item in items[:_MAX_CHANGES] for line in change_lines(item))
        if lines and lines not in self.shown_lines:  # many hosts change alike
            self.shown_lines.add(lines)
            for line in lines:
                logger.info(f"    {line}")
            if (hidden_count := len(items) - _MAX_CHANGES) > 0:
                logger.info(f"    … and {hidden_count} more (run.json has all)")

    def end_phase(self) -> None:
        """Sum up the phase that has ended."""
        is_summarized = self.operations == 1 and self.has_header  # its own lines have told it all
        if not self.operations or is_summarized:
            self.operations = self.changed = self.failed = 0
            return
        summary = f"{self.changed} changed something" if self.changed else "nothing changed"
        summary += f", {self.failed} failed" if self.failed else ""
        noun = "operation" if self.operations == 1 else "operations"
        seconds = time.monotonic() - self.started
        _say(f"{self.phase}: {self.operations} {noun}, {summary} ({seconds:.1f} s)")
        self.operations = self.changed = self.failed = 0


class _Click:
    """click for pyinfra's command line, without the footnote of its table of changes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(click, name)

    def echo(self, message: Any = None, *args: Any, **kwargs: Any) -> None:
        if not str(message).startswith(_FOOTNOTE):
            click.echo(message, *args, **kwargs)


def install(options: dict[str, Any]) -> Screen | None:
    """Put the plan in the place of pyinfra's table of changes, and a screen before its log.

    + options: of pyinfra's command line

    Returns the screen, which wants to be a callback handler of the run's state; None with -v, and
    where hosts do not wait for each other: pyinfra then tells nobody when an operation begins.
    """
    cli = pyinfra_cli.cli
    verbose = bool(options["verbosity"] or options["debug"] or options["debug_all"])
    is_full = verbose or bool(options["diff"])
    cli.print_meta = _planned(cli.print_meta if verbose else None, is_full)
    report.verbose = verbose
    if verbose:
        return None
    cli.click = _Click()
    report.resume = command(options)
    if options["serial"] or options["no_wait"]:
        return None
    screen = Screen()
    logger.addFilter(screen)
    cli.print_results = lambda state: screen.end_phase()
    return screen


def command(options: dict[str, Any]) -> str:
    """The command line that begins such a run again, without values that may be secret."""
    words = ["pyinfra", str(options["inventory"]), *map(str, options["operations"])]
    for name in ("limit", "exclude", "group_data"):
        option = f"--{name.replace('_', '-')}"
        words += [word for value in options[name] or () for word in (option, str(value))]
    words += [word for value in options["data"] or () for word in ("--data", _mask_value(value))]
    return shlex.join([*words, *(["-y"] if options["yes"] else [])])


def _mask_value(value: str) -> str:
    return f"{value.partition('=')[0]}=..."


def _planned(table: Callable[[State], None] | None, is_full: bool) -> Callable[[State], None]:
    def planned(state: State) -> None:
        # here, because context is made for a run, and this module is loaded before there is one
        from deploys.run.context import begin

        if table is not None:
            table(state)
        plan = build(state, begin()[0])
        if pointer := os.environ.get(POINTER):
            Path(pointer).write_text(json.dumps(plan.to_json(), indent=2) + "\n", encoding="utf-8")
        else:
            print(file=sys.stderr)
            show(plan, is_full)

    return planned


def _say(text: str) -> None:
    """A line of our own in pyinfra's log, past the filter."""
    record = logger.makeRecord(logger.name, logging.INFO, __file__, 0, text, (), None)
    for handler in logger.handlers:
        handler.handle(record)
