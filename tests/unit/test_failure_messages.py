"""What an operation that failed is said to have failed by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.state import State
from pyinfra.connectors.ssh import SSHConnector

from deploys.engine import commands
from deploys.engine.failure_messages import message


def failed(transport: Any, stderr: str = "", is_complete: bool = True) -> State:
    """A run on `gpu1` whose operation `op` failed. + transport: of its SSH connection"""
    connector = SSHConnector.__new__(SSHConnector)
    connector.client = cast(Any, SimpleNamespace(get_transport=lambda: transport))
    host = SimpleNamespace(name="gpu1", connector=connector)
    meta = SimpleNamespace(stderr=stderr, stdout="", is_complete=lambda: is_complete)
    operation = SimpleNamespace(operation_meta=meta)

    class Operations:
        def __getitem__(self, _: Any) -> dict[str, Any]:
            return {"op": operation}

    inventory = SimpleNamespace(get_host=lambda name: host)
    return cast(State, SimpleNamespace(inventory=inventory, ops=Operations()))


DEAD_TRANSPORT = SimpleNamespace(is_active=lambda: False)
LIVE_TRANSPORT = SimpleNamespace(is_active=lambda: True)


@pytest.mark.parametrize("transport", [None, DEAD_TRANSPORT])
@pytest.mark.parametrize("is_complete", [True, False])
def test_a_lost_connection_is_the_cause_where_nothing_was_printed(
    transport: Any, is_complete: bool
) -> None:
    cause, _, remedy = message(failed(transport, is_complete=is_complete), "gpu1", "op").partition(
        "remedy: "
    )
    assert cause.strip() == "the SSH connection was lost"
    assert "pyinfra INVENTORY exec" in remedy


def test_what_was_printed_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert message(failed(DEAD_TRANSPORT, stderr="no space"), "gpu1", "op") == "no space"
    assert message(failed(LIVE_TRANSPORT), "gpu1", "op") == ""
    monkeypatch.setitem(commands.messages, ("gpu1", "op"), "ours")
    assert message(failed(DEAD_TRANSPORT, stderr="no space"), "gpu1", "op") == "ours"
