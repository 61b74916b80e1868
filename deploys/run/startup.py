"""Checks what a run is started with, before pyinfra connects to any host.

pyinfra has no hook there, and answers a mistake with a traceback or with a question that nobody
may be there to answer. `config.py`, the first file that it executes, puts ours around four of the
functions of its command line.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from traceback import walk_tb
from typing import Any

import click
import pyinfra_cli.cli
import pyinfra_cli.inventory
from paramiko import SSHException
from pyinfra import logger
from pyinfra.api.exceptions import ConnectorDataTypeError, PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import BaseStateCallback, State, StateStage
from pyinfra.connectors.base import host_to_connector_data
from pyinfra.connectors.ssh import SSHConnector
from pyinfra.connectors.ssh_util import load_key_with_certificate
from pyinfra.context import config, ctx_state
from pyinfra.context import state as run_state
from pyinfra_cli.exceptions import CliError, UnexpectedExternalError

from deploys.engine import run_ending as ending
from deploys.engine import time_notes, unanswered
from deploys.engine.connect_spans import Connections, UnreachableHosts
from deploys.engine.connections import unreachable, unreachable_problem
from deploys.engine.spans import span
from deploys.engine.start_problems import refusal
from deploys.run import deploy_kinds as kinds
from deploys.run import report, screen
from gpuboot.config import inventory_files
from gpuboot.config.problems import Problem, render

_DEPLOYS = Path(__file__).resolve().parents[1]
_PRINTING = ("debug", "debug-all", "debug-facts", "debug-operations")
_group_data: dict[str, bool] = {}  # file -> whether it holds settings


def install() -> None:
    """Put our checks in place, when pyinfra runs from the command line."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    # whatever root's own are there: files have the modes that programs give them, and what is
    # matched is English
    config.SHELL = "sh -c 'umask 022; export LC_ALL=C; exec sh \"$@\"' sh"
    inventory_name = str(context.params["inventory"])
    _warn(context.params)
    operations = [Path(item).resolve() for item in context.params["operations"]]
    own_deploys = [item.name for item in operations if item.parent == _DEPLOYS]
    time_notes.deploy = " ".join(own_deploys)
    cli = pyinfra_cli.cli
    cli.make_inventory = _loading(cli.make_inventory)
    pyinfra_cli.inventory.exec_file = _reading(pyinfra_cli.inventory.exec_file, inventory_name)
    cli._do_confirm = _asking(cli._do_confirm)
    display = screen.install(context.params) if set(own_deploys) & set(kinds.PLANNED) else None
    cli.connect_all = _connecting(cli.connect_all, inventory_name, own_deploys, display)
    if own_deploys:
        cli._exit = ending.by(cli._exit, report.close)
        cli.load_deploy_file = unanswered.explain_unanswered(cli.load_deploy_file)
        ending.watch(kinds.remains)
    cli.run_ops = _locking(cli.run_ops, screen.command(context.params))


def _warn(options: dict[str, Any]) -> None:
    printing_options = [f"--{name}" for name in _PRINTING if options.get(name.replace("-", "_"))]
    printing_options += [item for item in options["operations"] if item == "debug-inventory"]
    if printing_options:
        logger.warning(
            f"{', '.join(printing_options)} prints the hosts' data, passwords such as "
            "_sudo_password included: read what it wrote before you pass it on"
        )


def inventory(inventory_name: str, data: Mapping[str, Any]) -> Inventory:
    """An inventory that is read outside of pyinfra's command line, which connects to its hosts.

    + data: host data of the command line

    Raises `CliError` for one that cannot be used.
    """
    execute = pyinfra_cli.inventory.exec_file
    pyinfra_cli.inventory.exec_file = _reading(execute, inventory_name)
    state = State()
    state.cwd = str(Path.cwd())
    try:
        with ctx_state.use(state):
            load = _loading(pyinfra_cli.inventory.make_inventory)
            loaded: Inventory = load(inventory_name, override_data=dict(data), cwd=state.cwd)
            return loaded
    finally:
        pyinfra_cli.inventory.exec_file = execute


def _loading(load: Callable[..., Any]) -> Callable[..., Any]:
    """The inventory is a file that is there, and Python; so are the files of group_data."""

    def loading(inventory_name: str, *args: Any, **kwargs: Any) -> Any:
        path, folder = Path(inventory_name), Path.cwd()
        if problem := inventory_files.missing(inventory_name, folder):
            raise CliError(refusal([problem]))
        folders = {folder / "group_data", path.resolve().parent / "group_data"}
        files = [file for place in sorted(folders) for file in sorted(place.glob("*.py"))]
        if problems := inventory_files.syntax([*([path] if path.is_file() else []), *files]):
            raise CliError(refusal(problems))
        try:
            loaded: Inventory = load(inventory_name, *args, **kwargs)
        except PyinfraError as error:
            remedy = "correct the inventory: a host is a name for SSH, or @local"
            raise CliError(refusal([Problem("", f"{inventory_name}: {error}", remedy)])) from None
        if problems := [problem for host in loaded for problem in _connection_data(host)]:
            raise CliError(refusal(problems))
        return loaded

    return loading


def _connection_data(host: Host) -> Iterator[Problem]:
    """Data of a kind that the host's connector does not take, and ports that do not exist."""
    cls = host.connector_cls
    env = host.data.get("_env")
    if env is not None and not isinstance(env, Mapping):
        cause = f"_env is a {type(env).__name__}, not a dict of environment variables"
        yield Problem(host.name, cause, 'write _env = {"NAME": "value"}')
    try:
        host_to_connector_data(cls.data_cls, cls.data_meta, host.data)
    except ConnectorDataTypeError as error:
        cause = str(error).replace("::", ":").removeprefix("Invalid connector data ")
        yield Problem(host.name, cause, "correct it in the host's data or in group_data")
        return
    port = host.data.get("ssh_port")
    if cls is SSHConnector and port is not None and not 0 < port < 65536:
        remedy = "give a number from 1 to 65535, e.g. ssh_port = 2222"
        yield Problem(host.name, f"ssh_port is {port}", remedy)


def _reading(execute: Callable[..., Any], inventory_name: str) -> Callable[..., Any]:
    def reading(filename: str, *args: Any, **kwargs: Any) -> Any:
        try:
            values = execute(filename, *args, **kwargs)
        except (OSError, SyntaxError):  # of a folder that --group-data names
            raise CliError(refusal(inventory_files.syntax([Path(filename)]))) from None
        except UnexpectedExternalError as error:
            lines = [line for frame, line in walk_tb(error.exception.__traceback__)
                     if frame.f_code.co_filename == filename]  # fmt: skip
            problem = inventory_files.raised(filename, (lines or [0])[-1], error.exception)
            raise CliError(refusal([problem])) from None
        if filename == inventory_name:
            if problems := inventory_files.groups(filename, values):
                raise CliError(refusal(problems))
        else:
            _group_data[filename] = "gpuboot" in values
        return values

    return reading


def _asking(confirm: Callable[[str], bool]) -> Callable[[str], bool]:
    def asking(question: str) -> bool:
        if question.startswith("Detected changes"):
            question = "That is the plan. With -y a run does not ask"
        try:
            with span("your answer", wait=True):
                return confirm(question)
        except EOFError:
            raise CliError(_unanswered()) from None

    return asking


def _unanswered() -> str:
    """What to say instead of a question that nobody is there to answer."""
    cause = "standard input is no terminal, so nobody can answer whether to go on"
    if run_state.current_stage >= StateStage.Execute:
        return f"{cause}: the run ends here\n    remedy: fix what failed above, and run again"
    return render([Problem("", cause, "look at the plan with --dry, then run with -y")])


def _connecting(
    connect: Callable[[State], None],
    inventory_name: str,
    own_deploys: list[str],
    display: BaseStateCallback | None,
) -> Callable[[State], None]:
    def connecting(state: State) -> None:
        hosts = [host for host in state.inventory if state.is_host_in_limit(host)]
        if own_deploys:
            _before(state, hosts, inventory_name, own_deploys)
        for handler in filter(None, (UnreachableHosts(), Connections(), display)):
            state.add_callback_handler(handler)  # type: ignore[no-untyped-call]
        telling = bool(own_deploys) and set(own_deploys) <= set(kinds.TELLING)
        if original := state.should_raise_failed_hosts:
            is_interactive = not own_deploys and sys.stdin.isatty()
            state.should_raise_failed_hosts = _ending(original, is_interactive, telling)
        try:
            with span("connect"):
                connect(state)
            time_notes.prepare()
        except PyinfraError:
            if not unreachable:
                raise
            raise CliError(refusal(map(unreachable_problem, unreachable))) from None
        if own_deploys and unreachable and not telling:
            raise CliError(refusal(map(unreachable_problem, unreachable)))

    return connecting


def _locking(execute: Callable[..., None], command: str) -> Callable[..., None]:
    """Wrap a run so that no other one changes the site meanwhile. + command: for others to see"""

    def locking(state: State, *args: Any, **kwargs: Any) -> None:
        # here, because it looks at the context
        from deploys.run import lock

        with lock.hold(state, command) if kinds.may_change() else nullcontext():
            execute(state, *args, **kwargs)

    return locking


def _ending(
    original: Callable[[State], bool], is_interactive: bool, telling: bool
) -> Callable[[State], bool]:
    """Whether hosts that failed end the run.

    + original: pyinfra's own, which asks the person
    + is_interactive: also asks about hosts that could not be connected to
    + telling: the deploy goes on without these, and tells of them
    """

    def ending(state: State) -> bool:
        if state.current_stage == StateStage.Connect and not is_interactive:
            return not telling
        return state.current_stage == StateStage.Prepare or original(state)

    return ending


def _before(state: State, hosts: list[Host], inventory_name: str, own_deploys: list[str]) -> None:
    """Raise everything that is wrong and can be known without a connection."""
    if not list(state.inventory):
        raise CliError(refusal([inventory_files.no_hosts(inventory_name, Path.cwd())]))
    if not hosts:
        remedy = "give the name or the group of hosts that are in the inventory"
        raise CliError(refusal([Problem("", "--limit and --exclude leave no host", remedy)]))
    if own_deploys == [kinds.READING]:
        if problems := _keys(state, hosts):
            raise CliError(refusal(problems))
        return
    # here, because context is made for a run, and this module is loaded before there is one
    from deploys.run.context import begin

    groups = {group for host in state.inventory for group in host.groups}
    places = {Path(inventory_name).resolve().parent, Path.cwd() / "inventories"}
    files = {file.stem for place in places for file in place.glob("*.py")}
    has_settings = any(host.data.get("gpuboot") is not None for host in state.inventory)
    problems, warnings = inventory_files.unread(_group_data, groups, files, has_settings)
    for line in warnings:
        logger.warning(line)
    if problems := [*problems, *_keys(state, hosts)]:
        raise CliError(refusal(problems))
    nodes = begin()[2]
    if set(own_deploys) & set(kinds.LED):
        kinds.limited = [host.name for host in hosts] if state.limit_hosts else []
        # whichever of them leads is known later; a restore begins with the first
        controls = [node.host for node in nodes if node.role == "control_plane"]
        last = 1 if own_deploys == ["restore.py"] else len(controls)
        state.limit_hosts = [state.inventory.get_host(name) for name in controls[:last]]


def _keys(state: State, hosts: list[Host]) -> list[Problem]:
    """Private keys with which no connection can be tried."""
    problems, keys = [], dict[str, list[Host]]()
    for host in hosts:
        if host.connector_cls is SSHConnector and (key := host.data.get("ssh_key")):
            keys.setdefault(key, []).append(host)
    for key, owners in keys.items():
        password = owners[0].data.get("ssh_key_password")
        try:
            # pyinfra finds it there and does not ask for its password again
            state.private_keys[key] = load_key_with_certificate(
                key, password, cwd=state.cwd, allow_prompt=sys.stdin.isatty()
            )
        except (PyinfraError, SSHException, OSError, ValueError) as error:
            names = ", ".join(host.name for host in owners)
            cause = f"{error} (ssh_key of {names})"
            problems.append(Problem("", cause, "correct ssh_key, or leave it out to use an agent"))
    return problems
