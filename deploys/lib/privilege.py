"""How commands become root on a host, for code that runs them beside operations and facts."""

from __future__ import annotations

from typing import Any

from pyinfra.api.arguments import auth_argument_meta, pop_global_arguments
from pyinfra.api.host import Host
from pyinfra.connectors.util import ASKPASS_COMMAND, SUDO_ASKPASS_ENV_VAR
from pyinfra.context import state

from deploys.lib.shell import run_command

_KEYS = (*auth_argument_meta, "_shell_executable", "_env")


def become_arguments(host: Host) -> dict[str, Any]:
    """Who runs a `host.run_shell_command`, and in what environment: by data, config and flags."""
    arguments: dict[str, Any] = dict(pop_global_arguments(state, host, {})[0])
    return {key: arguments[key] for key in _KEYS if arguments.get(key)}


def prepare_askpass(host: Host) -> None:
    """Make the program that gives sudo its password, on a connected host.

    pyinfra makes it when it is not there, and takes the first line that the shell prints for its
    path, which may be a banner's.
    """
    folder: str = host.get_temp_dir_config()  # type: ignore[no-untyped-call]
    made = f"sudo_askpass_path__{folder}"
    if become_arguments(host).get("_sudo_password") and not host.connector_data.get(made):
        done = run_command(host, ASKPASS_COMMAND.format(folder, SUDO_ASKPASS_ENV_VAR))
        if done.ok:
            host.connector_data[made] = done.stdout
