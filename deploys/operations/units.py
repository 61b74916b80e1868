"""systemd units that have to run."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from deploys.facts.units import Units

_STAYS = ("enabled", "enabled-runtime", "static", "indirect", "generated", "alias")


@operation()
def running(units: Sequence[str]) -> Generator[StringCommand, None, None]:
    """Ensure units run now and after a boot.

    + units: full names, e.g. containerd.service
    """
    state = host.get_fact(Units, units=list(units))
    changed = False
    for unit in units:
        active, enabled = state.get(unit, ("", ""))
        if enabled not in _STAYS:
            changed = True
            yield StringCommand("systemctl enable", QuoteString(unit))
        if active != "active":
            changed = True
            yield StringCommand(
                "systemctl start", QuoteString(unit), "|| { journalctl -n 20 --no-pager -u",
                QuoteString(unit), ">&2; exit 1; }",
            )  # fmt: skip
    if not changed:
        host.noop(f"units run: {', '.join(units)}")
