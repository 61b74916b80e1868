"""The lab, logged in to as a user who may not sudo."""

import runpy
from typing import Any

_Group = tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]]

_lab = runpy.run_path("inventories/lab.py")


def _as_nosudo(group: _Group) -> _Group:
    hosts, data = group
    return [(name, {**host, "ssh_user": "nosudo", "_sudo": True}) for name, host in hosts], data


control_plane = _as_nosudo(_lab["control_plane"])
workers = _as_nosudo(_lab["workers"])
