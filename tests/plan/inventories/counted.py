"""The site that a run has made; what its hosts were asked goes to the file $PLAN_COMMANDS."""

import atexit
import json
import os
from pathlib import Path
from typing import Any

from pyinfra.connectors.fake import FakeConnector

from tests.plan.living_site import control_plane, workers

__all__ = ["control_plane", "workers"]

_connected: dict[str, FakeConnector] = {}
_init = FakeConnector.__init__


def _connect(self: FakeConnector, state: Any, host: Any) -> None:
    _init(self, state, host)
    _connected[host.name] = self


def _write_commands() -> None:
    commands = {name: connector.executed_commands for name, connector in _connected.items()}
    Path(os.environ["PLAN_COMMANDS"]).write_text(json.dumps(commands))


FakeConnector.__init__ = _connect  # type: ignore[method-assign]
atexit.register(_write_commands)
