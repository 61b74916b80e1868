"""Another backup of etcd after a failed one: a second failure stops no run."""

from __future__ import annotations

from typing import Any

import pytest

from deploys.engine import remote
from deploys.parts.etcd import operations as etcd_backup


@pytest.mark.parametrize("fails", [False, True])
def test_another_try_that_fails_is_told_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    warnings: list[str] = []

    def run(host: object, command: str) -> str:
        if fails:
            raise remote.RemoteError("the disk is full")
        return command

    monkeypatch.setattr(remote, "run", run)
    monkeypatch.setattr(etcd_backup, "warn", warnings.append)
    unused: Any = None
    assert etcd_backup._retry(unused, unused)
    assert ["the disk is full" in text for text in warnings] == [True] * fails
