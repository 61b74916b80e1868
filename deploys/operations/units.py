"""systemd units that have to run."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.facts.units import Units
from deploys.lib import changes
from deploys.lib.answers import read
from deploys.lib.commands import Commands
from deploys.lib.operation import operation
from gpuboot.plan import Change

_STAYS = ("enabled", "enabled-runtime", "static", "indirect", "generated", "alias")


@operation()
def running(units: Sequence[str]) -> Commands:
    """Ensure units run now and after a boot.

    + units: full names, e.g. containerd.service
    """
    state = read(Units, units=list(units))
    disabled = [unit for unit in units if state.get(unit, ("", ""))[1] not in _STAYS]
    stopped = [unit for unit in units if state.get(unit, ("", ""))[0] != "active"]
    for field, names, index in (("boot", disabled, 1), ("state", stopped, 0)):
        new = "enabled" if field == "boot" else "active"
        changes.record(
            *[
                Change(
                    subject=f"unit {unit}",
                    field=field,
                    old=state.get(unit, ("", ""))[index] or None,
                    new=new,
                )
                for unit in names
            ]
        )
    for unit in units:
        if unit in disabled:
            yield StringCommand("systemctl enable", QuoteString(unit))
        if unit in stopped:
            yield StringCommand(
                "systemctl start", QuoteString(unit), "|| { journalctl -n 20 --no-pager -u",
                QuoteString(unit), ">&2; exit 1; }",
            )  # fmt: skip
    if not disabled and not stopped:
        host.noop(f"units run: {', '.join(units)}")
