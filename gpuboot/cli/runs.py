"""Running pyinfra from a command: it holds the connections to the hosts of an inventory."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from gpuboot.config.exit_codes import BY_SIGNAL
from gpuboot.config.exit_codes import COULD_NOT_TELL as COULD_NOT_TELL
from gpuboot.diagnose import PROGRESS
from gpuboot.repair import STEPS

# deploys that a command starts leave what it needs to know in the file that this names
ANSWER = "GPUBOOT_ANSWER"

Inventory = Annotated[str, typer.Argument(help="pyinfra inventory, e.g. inventories/prod.py")]
Data = Annotated[
    list[str] | None, typer.Option("--data", help="KEY=VALUE of host data, as for pyinfra.")
]


rare_option = partial(typer.Option, hidden=True)  # --help-all shows it


def _show_all_options(context: typer.Context, value: bool) -> None:
    """The help page with the options that the first one leaves out."""
    if value:
        for parameter in context.command.params:
            setattr(parameter, "hidden", False)  # noqa: B010 (arguments have none)
        typer.echo(context.get_help())
        raise typer.Exit


AllOptions = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, callback=_show_all_options, help="Show rarer options as well."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]
Metrics = Annotated[
    Path | None,
    typer.Option("--metrics", help="File for node-exporter's textfile collector: NAME.prom."),
]
Reports = Annotated[Path, typer.Option("--reports", help="The folder verify.reports.")]
REPORTS = Path("reports")
SITE = "deploys/site.py"
Deploy = Annotated[str, typer.Option("--deploy", help="Of Docker hosts: deploys/standalone.py.")]
SameSudoPassword = Annotated[
    bool, typer.Option("--same-sudo-password", help="Ask once for the sudo password of all hosts.")
]


@dataclass(frozen=True)
class PyinfraResult:
    """How pyinfra ended.

    + code: its exit code; negative when a signal killed it
    + answer: what the deploy left in the file named by the answer's variable; "" for nothing
    + output: all that it printed, where that was kept back
    """

    code: int
    answer: str
    output: str


def options(data: Sequence[str] | None = None, same_sudo_password: bool = False) -> list[str]:
    """pyinfra's own options for what a command was given."""
    data_options = [word for item in data or [] for word in ("--data", item)]
    return [*data_options, *(["--same-sudo-password"] if same_sudo_password else [])]


def pyinfra(
    inventory: str,
    deploy: str,
    extra_options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    answer: str = ANSWER,
    capture_output: bool = False,
    dry: bool = False,
    tidies: bool = False,
) -> PyinfraResult:
    """`pyinfra INVENTORY DEPLOY -y` in the current folder, which must be the project's.

    + extra_options: options, e.g. those of `options`
    + environment: laid over this process's own
    + answer: variable that names the file for the deploy's answer
    + capture_output: keep its output back, instead of printing it on stderr
    + dry: `--dry` instead of `-y`: find out what would change, and change nothing
    + tidies: the deploy has an answer also when a signal has ended it

    Signals are handed on to it, and its end is waited for. Ends the command where one ended it.
    """
    if not Path(deploy).is_file():
        stop(wrong_folder(deploy))
    with tempfile.TemporaryDirectory(prefix="gpuboot-") as folder:
        path = Path(folder) / "answer"
        command = [sys.executable, "-m", "pyinfra", inventory, deploy, "--dry" if dry else "-y"]
        variables = {**os.environ, **(environment or {}), answer: str(path)}
        result = _run_pyinfra([*command, *extra_options], variables, capture_output)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    if result.returncode in BY_SIGNAL and not tidies:
        if capture_output:
            lines = [line for line in result.stdout.splitlines() if line.startswith("interrupted:")]
            typer.echo([*lines, "interrupted: run it again"][0], err=True)
        raise typer.Exit(result.returncode)
    return PyinfraResult(result.returncode, text, result.stdout or "")


def _run_pyinfra(
    command: Sequence[str], variables: Mapping[str, str], capture_output: bool
) -> subprocess.CompletedProcess[str]:
    """Run pyinfra: its stdout is for its own JSON; all that a person reads goes to stderr."""
    progress = os.dup(2)  # for a deploy whose output is kept back to tell how far it is
    steps = os.dup(1)  # for one that tells each step to programs
    try:
        return run_to_its_end(
            command,
            env={**variables, PROGRESS: str(progress), STEPS: str(steps)},
            pass_fds=(progress, steps),
            stdout=subprocess.PIPE if capture_output else sys.stderr,
            stderr=subprocess.STDOUT if capture_output else None,
            text=True,
        )
    finally:
        os.close(progress)
        os.close(steps)


def run_to_its_end(
    command: Sequence[str], **popen_arguments: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command; signals are handed on to it, so that it releases what it holds.

    Its exit code is then the signal's, as a shell has it.
    """
    with subprocess.Popen(command, **popen_arguments) as process, _handing_on(process) as received:
        output, _ = process.communicate()
    code = 128 + received[0] if received else process.returncode
    return subprocess.CompletedProcess(command, code, output)


@contextlib.contextmanager
def _handing_on(process: subprocess.Popen[str]) -> Iterator[list[int]]:
    """Hand signals on to a process in the block; yields a list of those that came."""
    received: list[int] = []

    def hand_on(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        process.send_signal(signal.SIGTERM)

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {signum: signal.signal(signum, hand_on) for signum in signals}
    try:
        yield received
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def wrong_folder(deploy: str) -> str:
    """What to say where a deploy of the project is not found."""
    return (
        f"{deploy} is not here\n    remedy: run this in the folder where `gpuboot init` made the "
        "site, or begin one in a folder without a `deploys` of another project"
    )


def is_terminal() -> bool:
    """Whether somebody is there to answer questions."""
    return sys.stdin.isatty()


def require_folder(path: Path | None) -> None:
    """End the command where the folder of a file to write is missing. + path: None: no file"""
    if path and not path.parent.is_dir():
        stop(f"{path}: there is no folder {path.parent}\n    remedy: make it, then run again")


def stop(message: str) -> NoReturn:
    """End the command: it could not tell what was asked of it."""
    typer.echo(message, err=True)
    raise typer.Exit(COULD_NOT_TELL)
