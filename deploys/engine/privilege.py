"""How commands become root on a host, for code that runs them beside operations and facts."""

from __future__ import annotations

from typing import Any

from pyinfra.api.arguments import auth_argument_meta, pop_global_arguments
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.connectors.util import SUDO_ASKPASS_ENV_VAR
from pyinfra.context import state

from deploys.engine.shell import run_command

_KEYS = (*auth_argument_meta, "_shell_executable", "_env")


def become_arguments(host: Host) -> dict[str, Any]:
    """Who runs a `host.run_shell_command`, and in what environment: by data, config and flags."""
    arguments: dict[str, Any] = dict(pop_global_arguments(state, host, {})[0])
    return {key: arguments[key] for key in _KEYS if arguments.get(key)}


# Runs the program that it makes, as sudo does: a file system that is mounted noexec, as /tmp often
# is, holds none. `pyinfra.connectors.util` has the same in one folder
_ASKPASS = """\
for folder in "${{TMPDIR:-{folder}}}" "$HOME" /var/tmp /dev/shm; do
  file=$(mktemp "$folder/pyinfra-sudo-askpass-XXXXXXXXXXXX" 2>/dev/null) || continue
  cat >"$file" <<'__EOF__'
#!/bin/sh
printf '%s\\n' "${variable}"
__EOF__
  chmod 755 "$file"
  if "$file" >/dev/null 2>&1; then echo "$file"; exit; fi
  rm -f "$file"
done
exit 1
"""


def prepare_askpass(host: Host) -> None:
    """Make the program that gives sudo its password, on a connected host.

    pyinfra makes it when it is not there, and takes the first line that the shell prints for its
    path, which may be a banner's. Raises `PyinfraError` where no folder of the host can hold it.
    """
    folder: str = host.get_temp_dir_config()  # type: ignore[no-untyped-call]
    data_key = f"sudo_askpass_path__{folder}"
    if become_arguments(host).get("_sudo_password") and not host.connector_data.get(data_key):
        script = _ASKPASS.format(folder=folder, variable=SUDO_ASKPASS_ENV_VAR)
        result = run_command(host, script)
        if not result.ok:
            raise PyinfraError(
                f"no program can be run from {folder}, the user's home, /var/tmp and /dev/shm, so "
                "sudo cannot be given its password; remedy: mount one of them without noexec, or "
                f"let sudo ask for none (NOPASSWD) {result.output}".rstrip()
            )
        host.connector_data[data_key] = result.stdout
