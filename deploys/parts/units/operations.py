"""systemd units that have to run."""

from collections.abc import Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.units.fact import Units
from gpuboot.plan import Change

_BOOT_STATES = ("enabled", "enabled-runtime", "static", "indirect", "generated", "alias")
_ABSENT = ("", "")
# A unit of Type=simple counts as started before its program has read its own configuration.
_SETTLES_S = 2


@operation()
def running(units: Sequence[str]) -> Commands:
    """Ensure units run now and after a boot, also those that somebody has masked.

    + units: full names, e.g. containerd.service
    """
    yield from ensured(units)


def ensured(units: Sequence[str], started: bool = True) -> Commands:
    """What `running` yields. + started: False for units that only have to start at boot."""
    state = read(Units, units=list(units))
    disabled = [unit for unit in units if state.get(unit, _ABSENT)[1] not in _BOOT_STATES]
    stopped = [unit for unit in units if started and state.get(unit, _ABSENT)[0] != "active"]
    for field, names, index in (("boot", disabled, 1), ("state", stopped, 0)):
        new = "enabled" if field == "boot" else "active"
        changes.record(
            *[
                Change(
                    subject=f"unit {unit}",
                    field=field,
                    old=state.get(unit, _ABSENT)[index] or None,
                    new=new,
                )
                for unit in names
            ]
        )
    for unit in units:
        if unit in disabled:
            if state.get(unit, _ABSENT)[1].startswith("masked"):
                # each takes away the mask of one folder: /etc/systemd/system, /run/systemd/system
                yield StringCommand("systemctl unmask", QuoteString(unit))
                yield StringCommand("systemctl unmask --runtime", QuoteString(unit))
            yield StringCommand("systemctl enable", QuoteString(unit))
        if unit in stopped:
            yield _start(unit)
    if not disabled and not stopped:
        host.noop(f"units are as they have to be: {', '.join(units)}")


def _start(unit: str) -> StringCommand:
    name = QuoteString(unit)
    return StringCommand(
        "{ systemctl start", name, f"&& sleep {_SETTLES_S} && systemctl is-active --quiet", name,
        "; } || { journalctl -n 20 --no-pager -u", name, ">&2; exit 1; }",
    )  # fmt: skip
