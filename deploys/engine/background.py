"""Work that goes on on a host while the run does something else."""

from __future__ import annotations

from pyinfra.api.command import QuoteString, StringCommand


def started(unit: str, description: str, script: str) -> StringCommand:
    """The command that runs a shell script as a unit of systemd, and does not wait for its end.

    What it prints is in the journal (`journalctl -u UNIT`). One that still runs from an earlier run
    is as good as a new one. Only for what somebody else does again when it has failed.

    It gives way to what the run waits for.

    + unit: its name; + description: what it does, in words
    + script: shown, so it must hold no secret
    """
    return StringCommand(
        f"systemctl is-active --quiet {unit} || systemd-run --quiet --collect --no-block"
        f" --nice=19 --unit={unit} --description",
        QuoteString(description), "sh -c", QuoteString(script),
    )  # fmt: skip
