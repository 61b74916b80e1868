"""How commands become root on a host, for code that runs them beside operations and facts."""

from __future__ import annotations

from typing import Any

from pyinfra.api.arguments import pop_global_arguments
from pyinfra.api.host import Host
from pyinfra.context import state

_KEYS = ("_sudo", "_sudo_user", "_sudo_password", "_use_sudo_login")


def arguments(host: Host) -> dict[str, Any]:
    """Arguments for `host.run_shell_command`, as host data, config and flags have them."""
    found: dict[str, Any] = dict(pop_global_arguments(state, host, {})[0])
    return {key: found[key] for key in _KEYS if found.get(key)}
