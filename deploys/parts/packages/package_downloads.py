"""What a package manager downloads: indices, and packages ahead of their installation."""

from collections.abc import Mapping, Sequence

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine.commands import Commands
from deploys.engine.download_retries import with_retries
from deploys.parts.packages import apt, dnf
from deploys.parts.packages.package_manager import PackageManagerCommands
from gpuboot.hosts.platforms import PackageManager

COMMANDS: Mapping[PackageManager, PackageManagerCommands] = {"apt": apt, "dnf": dnf}


def ready(missing: Mapping[str, str], manager: PackageManager, consequence: str) -> Commands:
    """Commands after which packages are sure to be there and only have to be installed.

    For who stops something before: what cannot be had has to fail while nothing has been touched.

    + missing: packages -> version or its pattern, or "" for any
    + consequence: what becomes of the host where they cannot be had, for the message
    """
    yield indices(manager)
    yield FunctionCommand(downloaded, (dict(missing), manager, consequence), {})


def downloaded(
    state: State, host: Host, missing: Mapping[str, str], manager: PackageManager, consequence: str
) -> bool:
    """A FunctionCommand's body, as `ready` says. False: it failed."""
    commands = COMMANDS[manager]
    failure_text = f"{manager} cannot install {' '.join(commands.words(missing))}; {consequence}"
    command = _command_with_retries(commands.download(missing), manager, missing, failure_text)
    return bool(command.function(state, host, *command.args, **command.kwargs))


def indices(manager: PackageManager) -> FunctionCommand:
    """Read all package indices; once in a run on a host."""
    text = COMMANDS[manager].READ_INDICES
    return with_retries(text, f"{manager}'s indices", needed=False, once=True)


def install(
    manager: PackageManager, missing: Mapping[str, str], available: Sequence[str]
) -> FunctionCommand:
    """Install packages. + available: those whose versions to show when this fails"""
    commands = COMMANDS[manager]
    failure_text = f"{manager} cannot install {' '.join(commands.words(missing))}"
    return _command_with_retries(
        commands.install(missing), manager, missing, failure_text, available
    )


def _command_with_retries(
    command: StringCommand | str,
    manager: PackageManager,
    missing: Mapping[str, str],
    failed: str,
    available: Sequence[str] = (),
) -> FunctionCommand:
    names = list(available) or [name for name, version in missing.items() if version]
    versions = COMMANDS[manager].list_versions(names).get_raw_value() if names else ""
    return with_retries(command, "packages", failed=failed, versions=versions)
