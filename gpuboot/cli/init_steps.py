"""What `gpuboot init` does, one step after the other."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import typer

from gpuboot.cli import runs
from gpuboot.config import ssh_targets
from gpuboot.config.exit_codes import NOT_WRITTEN
from gpuboot.config.problems import Problem, render
from gpuboot.config.project_files import link_project
from gpuboot.config.ssh_targets import Target, parse_all
from gpuboot.config.unwritten import unwritten
from gpuboot.hosts.reading import FINDINGS, Reading, from_json
from gpuboot.site import site_check, site_files, site_screen
from gpuboot.site.draft import Choices, Site, default_first, inventory_names, name_problems
from gpuboot.site.draft import site as make_site

DEPLOY = "deploys/read_hosts.py"
_NEW_KEY = re.compile(r"Added host key for (\S+) to known_hosts")
_HOSTS = "Hosts (user@host:port, host, or a name of ~/.ssh/config), with spaces between them"


@dataclass(kw_only=True)
class InitArguments:
    """What the person gave, and is asked for where it is missing.

    + first: control-plane hosts, or the one monitoring host
    """

    hosts: list[str]
    name: str
    docker: bool
    first: list[str]
    endpoint: str
    user: str
    port: int | None
    key: str
    ssh_config: str
    sudo_password: bool
    force: bool

    @property
    def files(self) -> tuple[Path, Path]:
        """The inventory and its group_data."""
        return Path(f"inventories/{self.name}.py"), Path(f"group_data/{self.name}.py")


def make_site_files(arguments: InitArguments, control_plane: bool, monitor: bool) -> None:
    """Read the hosts, and write their inventory and settings.

    + control_plane, monitor: whether `first` was given as such
    """
    if arguments.docker and (control_plane or arguments.endpoint):
        _refuse([Problem("--docker", "Docker hosts have no control plane", "give --monitor")])
    if monitor and not arguments.docker:
        _refuse([Problem("--monitor", "only Docker hosts have one", "add --docker")])
    asking = runs.is_terminal()
    _complete(arguments, asking)
    targets = _targets(arguments)
    reading = _read(arguments, targets)
    choices = _choose(arguments, targets, reading, asking)
    _write(arguments, make_site(targets, reading.hosts, choices))


def _complete(arguments: InitArguments, asking: bool) -> None:
    """Ask for what is missing, or without a terminal name all of it at once."""
    if asking and not arguments.hosts:
        if aliases := ssh_targets.aliases(_config(arguments)):
            typer.echo(f"names in {_config(arguments)}: {' '.join(aliases)}")
        arguments.hosts = typer.prompt(_HOSTS).split()
    if asking and not arguments.name:
        arguments.name = typer.prompt("Name of the site", default="prod")
    problems = []
    if not arguments.hosts:
        problems.append(Problem("HOSTS", "no host is named", "gpuboot init --name prod cp1 gpu1"))
    if not arguments.name:
        problems.append(Problem("--name", "the site has no name", "give one, e.g. --name prod"))
    if problems:
        _refuse(problems)


def _targets(arguments: InitArguments) -> list[Target]:
    """The hosts, when all that is known without a connection is right."""
    targets, problems = parse_all(arguments.hosts, arguments.user, arguments.port)
    problems += name_problems(arguments.name)
    problems += [
        Problem(str(path), "is there already", "choose another --name, or overwrite it by --force")
        for path in arguments.files
        if path.exists() and not arguments.force
    ]
    problems += [
        Problem(text, "is to lead, and is none of the hosts", "name it among the hosts as well")
        for text in arguments.first
        if not _match_host(text, targets)
    ]
    if problems:
        _refuse(problems)
    _link_project()
    return targets


def _link_project() -> None:
    try:
        links = link_project(Path.cwd())
    except OSError as error:
        typer.echo(unwritten(Path.cwd(), error), err=True)
        raise typer.Exit(NOT_WRITTEN) from None
    if links:
        typer.echo(f"linked to the installed gpuboot: {', '.join(links)}")
    if not Path(DEPLOY).is_file():
        runs.stop(runs.wrong_folder(DEPLOY))


def _read(arguments: InitArguments, targets: Sequence[Target]) -> Reading:
    """What the hosts say, when all of them could be read."""
    typer.echo(f"reading {len(targets)} host{'s' * (len(targets) > 1)}")
    with tempfile.TemporaryDirectory(prefix="gpuboot-") as folder:
        inventory = Path(folder) / "reading.py"
        text = site_files.reading_inventory(targets, arguments.key, arguments.ssh_config)
        inventory.write_text(text, encoding="utf-8")
        options = runs.options(same_sudo_password=arguments.sudo_password)
        result = runs.pyinfra(str(inventory), DEPLOY, options, answer=FINDINGS, capture_output=True)
    if new := _NEW_KEY.findall(result.output):
        typer.echo(
            f"host keys that were new are in known_hosts now: {', '.join(sorted(set(new)))}\n"
            "    remedy: compare them with the servers' consoles, see docs/servers.md"
        )
    if not result.answer:
        typer.echo(f"{result.output.strip()}\nno host was read", err=True)
        raise typer.Exit(1)
    reading = from_json(result.answer)
    names = inventory_names(targets)
    # a host that was not connected to has a problem of its own, which names what init can do
    problems = [item for item in reading.problems if item.host not in reading.unreachable]
    problems += [
        ssh_targets.unreachable(names[name], cause) for name, cause in reading.unreachable.items()
    ]
    for line in result.output.splitlines():
        # what a host said in the place of its state
        if any(f"[{problem.host}]" in line for problem in reading.problems):
            typer.echo(line.strip(), err=True)
    if problems:
        _refuse(problems)
    return reading


def _choose(
    arguments: InitArguments, targets: Sequence[Target], reading: Reading, asking: bool
) -> Choices:
    """What the person decides, asked where it was not given."""
    hosts = [(name, len(reading.hosts[name].state.gpus)) for name in inventory_names(targets)]
    first = [_match_host(text, targets) for text in arguments.first]
    if asking and not first and len(hosts) > 1:
        typer.echo("\n".join(f"    {name}: {gpus} GPUs" for name, gpus in hosts))
        role = (
            "Monitoring host" if arguments.docker else "Control plane (one host, or three or five)"
        )
        answer = typer.prompt(role, default=default_first(hosts, arguments.docker))
        first = str(answer).split()
    if first and len(first) % 2 == 0 and not arguments.docker:
        cause = f"{len(first)} control-plane nodes: etcd needs more than half of them"
        _refuse([Problem("--control-plane", cause, "use one, three or five")])
    if unknown_hosts := [name for name in first if name not in reading.hosts]:
        _refuse(
            [Problem(name, "is none of the hosts", "name it as above") for name in unknown_hosts]
        )
    return Choices(
        name=arguments.name,
        docker=arguments.docker,
        first=tuple(first),
        endpoint=arguments.endpoint,
        ssh_key=arguments.key,
        ssh_config=arguments.ssh_config,
        sudo_password=arguments.sudo_password,
    )


def _match_host(text: str, targets: Sequence[Target]) -> str:
    """The inventory name of the host that a person means; "" when it is none of them."""
    for name, target in inventory_names(targets).items():
        if text in (name, target.host, str(target)):
            return name
    return ""


def _write(arguments: InitArguments, site: Site) -> None:
    """Write the files when a run would take them, and say what a run will still refuse."""
    texts = site_files.inventory_text(site), site_files.group_data_text(site)
    mistakes, problems = site_check.problems(site, *texts)
    if mistakes:
        _refuse(mistakes)
    _put(dict(zip(arguments.files, texts, strict=True)))
    typer.echo("\n".join(site_screen.lines(site, problems, arguments.files)))


def _put(files: dict[Path, str]) -> None:
    """Write all files or none."""
    parts = {path: path.with_name(f".{path.name}.part") for path in files}
    try:
        for path, part in parts.items():
            part.parent.mkdir(exist_ok=True)
            part.write_text(files[path], encoding="utf-8")
        for path, part in parts.items():
            part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            for part in parts.values():
                part.unlink(missing_ok=True)
        typer.echo(unwritten(next(iter(files)), error), err=True)
        raise typer.Exit(NOT_WRITTEN) from None


def _config(arguments: InitArguments) -> Path:
    return Path(arguments.ssh_config) if arguments.ssh_config else ssh_targets.USER_CONFIG


def _refuse(problems: Iterable[Problem]) -> NoReturn:
    typer.echo(render(problems, "nothing was written"), err=True)
    raise typer.Exit(1)
