"""A compose project on a host: only what differs is written, and only whom it concerns is told."""

import posixpath
import shlex

from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail
from deploys.engine.download_retries import with_retries
from deploys.engine.operation import operation
from deploys.parts.compose.fact import Compose, ComposeState
from deploys.parts.files.fact import FileTexts
from deploys.parts.files.operations import write
from gpuboot.docker.compose import COMPOSE, File, Project
from gpuboot.docker.compose_plan import project_changes
from gpuboot.hosts.registries import DOCKER_ENVIRONMENT
from gpuboot.plan import Unknown

_LOGS = 20  # lines of each service's log that are shown when the project does not come up


@operation()
def up(project: Project) -> Commands:
    """Ensure that a project's files are there and its containers run with them.

    Contents come by standard input: nothing of them is on a command line or in a log. A service
    whose files changed reads them again; one whose definition changed is created again.

    + project: what the host has to have
    """
    paths = [file.path for file in project.files]
    state = read(Compose, folder=project.folder, files=paths, folders=list(project.folders))
    if state.absent:
        # while pyinfra prepares: an operation before this one will install it
        changes.record(Unknown(what="the compose project", until="Docker runs"))
        yield fail("no dockerd answers", "run deploys/standalone.py")
        return
    commands = [*_files(project, state), *_containers(project, state)]
    if commands:
        _record(project, state)
    else:
        host.noop("files and containers are up to date")
    yield from commands


def _files(project: Project, state: ComposeState) -> list[StringCommand]:
    commands = []
    for path, owner in project.folders.items():
        if state.folders.get(path) != ("700", owner):
            name = QuoteString(f"{project.folder}/{path}")
            commands.append(StringCommand(f"install -d -m 700 -o {owner} -g {owner}", name))
    expected = {file.path for file in project.files}
    strays = sorted(set(state.written_files) - expected)
    differing_files = [file for file in project.files if not _right(file, state)]
    # before they are there: a run that is killed on the way leaves nothing unknown behind
    if set(state.written_files) != expected and differing_files:
        commands.append(_note(project, "written", sorted({*state.written_files, *expected})))
    commands += [_put(project.folder, file) for file in differing_files]
    commands += [StringCommand("rm -f", QuoteString(f"{project.folder}/{path}")) for path in strays]
    if set(state.written_files) != expected and (strays or not differing_files):
        commands.append(_note(project, "written", sorted(expected)))
    return commands


def _record(project: Project, state: ComposeState) -> None:
    differing_files = [file for file in project.files if not _right(file, state)]
    readable = [file for file in differing_files if file.mode == "644" and file.path in state.files]
    paths = {f"{project.folder}/{file.path}": file.path for file in readable}
    texts = read(FileTexts, paths=list(paths)) if paths else {}
    old = {paths[path]: text for path, text in texts.items()}
    running = {
        name
        for name, items in state.containers.items()
        if any(item[0] == "running" for item in items)
    }
    strays = sorted(set(state.written_files) - {file.path for file in project.files})
    changes.record(
        *project_changes(project, differing_files, old, running, set(state.files), strays)
    )


def _right(file: File, state: ComposeState) -> bool:
    mode, owner, digest = state.files.get(file.path, ("", -1, ""))
    expected_digest = digest if file.text is None else file.sha256
    return (mode, owner) == (file.mode, file.owner) and digest == expected_digest


def _put(folder: str, file: File) -> StringCommand:
    """Write a file in one step, never readable for others than it is meant for."""
    path = f"{folder}/{file.path}"
    part, target = QuoteString(f"{path}.gpuboot-new"), QuoteString(path)
    # exactly the content: what comes by standard input ends with a newline, wanted or not
    make = f"head -c {len((file.text or '').encode())}"
    if file.text is None:
        # what is there already stays; a random password has no newline, which would be part of it
        old, new = f"cat {shlex.quote(path)} 2>/dev/null", "head -c 24 /dev/urandom | base64"
        make = f"{{ {old} || {new} | tr -d '\\n'; }}"
    return StringCommand(
        "mkdir -p", QuoteString(posixpath.dirname(path)), "&& (umask 077 &&", make, ">", part,
        f") && chmod {file.mode}", part, f"&& chown {file.owner}:{file.owner}", part, "&& mv",
        part, target, _stdin=file.text or "",
    )  # fmt: skip


def _containers(project: Project, state: ComposeState) -> list[StringCommand | FunctionCommand]:
    digests = {service: project.digest(service) for service in project.services}
    stale = [name for name, digest in digests.items() if state.applied.get(name, "") != digest]
    compose = next(file for file in project.files if file.path == COMPOSE)
    running = {
        name: [hash_ for status, hash_ in items if status == "running"]
        for name, items in state.containers.items()
    }
    right = (
        _right(compose, state)
        and set(state.containers) == set(project.services)
        and all(running[name] == [state.hashes.get(name)] for name in project.services)
    )
    if right and not stale:
        return []
    lines = [f"{name} {digest}" for name, digest in digests.items() if digest]
    commands: list[StringCommand | FunctionCommand] = [
        _apply(project, stale),
        _note(project, "applied", lines),
    ]
    return commands if right else [_pulled(project), *commands]


def _pulled(project: Project) -> FunctionCommand:
    """Images before containers: a registry that fails for a moment stops nothing that runs."""
    return with_retries(
        f"{DOCKER_ENVIRONMENT}; cd {project.folder} && "
        "docker compose pull --quiet --policy missing",
        "the project's images",
    )


def _apply(project: Project, stale: list[str]) -> StringCommand:
    """Bring containers up; the others whose files changed read them again."""
    script = [f"cd {project.folder}"]
    script += [f"{_variable(name)}=$(docker compose ps -q {name})" for name in stale]
    script.append("docker compose up -d --remove-orphans --quiet-pull")
    for name in stale:
        action = project.reloads.get(name, "restart")
        reload_command = f"kill -s {action}" if action == "SIGHUP" else action
        old = _variable(name)
        script.append(
            f'{{ [ -z "${old}" ] || [ "${old}" != "$(docker compose ps -q {name})" ] || '
            f"docker compose {reload_command} {name}; }}"
        )
    failed = f"{{ cd {project.folder}; docker compose ps -a; docker compose logs --tail {_LOGS};"
    return StringCommand("(", " && ".join(script), ") ||", failed, "exit 1; } >&2")


def _variable(service: str) -> str:
    return "was_" + service.replace("-", "_")


def _note(project: Project, name: str, lines: list[str]) -> StringCommand:
    return write(f"{project.folder}/.{name}", "".join(f"{line}\n" for line in lines))
