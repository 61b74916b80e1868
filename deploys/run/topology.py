"""Who is who: the only place that reads inventory groups."""

from typing import Any

from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.context import state

from gpuboot.config.inventory import DATA, Entry
from gpuboot.config.problems import Problem
from gpuboot.preflight.docker_inventory import is_of_docker_hosts


def inventory() -> Inventory:
    """The inventory of this run."""
    return state.inventory


def read(source: Inventory) -> list[Entry]:
    """All hosts of an inventory with the groups they are in and the data that concerns us.

    Control-plane nodes come first, in the order of their group.
    """
    ordered: dict[str, Host] = {}
    for group in ("control_plane", "workers"):
        ordered |= {host.name: host for host in source.get_group(group, default=[])}
    ordered |= {host.name: host for host in source if host.name not in ordered}
    return [
        Entry(
            host.name,
            tuple(dict.fromkeys(host.groups)),
            {key: host.data.get(key) for key in DATA if host.data.get(key) is not None},
            tuple(sorted(set(host.data.dict()) - set(DATA))),  # type: ignore[no-untyped-call]
        )
        for host in ordered.values()
    ]


def docker_hosts(source: Inventory) -> bool:
    """Whether an inventory is one of Docker hosts, for deploys/standalone.py."""
    return is_of_docker_hosts([name for name, hosts in source.groups.items() if hosts])


def settings_data(source: Inventory) -> tuple[dict[str, Any], list[Problem]]:
    """The `gpuboot` dict of the inventory's group data, which must be the same for all hosts.

    What is wrong with it comes as problems; the dict may only be used when there is none.
    """
    hosts = list(source)
    first = hosts[0].data.get("gpuboot") if hosts else {}
    if first is None:
        first = {}
    if not isinstance(first, dict):
        kind = type(first).__name__
        return {}, [Problem("", f"gpuboot is a {kind}, not a dict", "write gpuboot = {...}")]
    problems = [
        Problem(
            host.name,
            f"its gpuboot settings differ from those of {hosts[0].name}",
            "set gpuboot = {...} once, in group_data/<inventory>.py or group_data/all.py",
        )
        for host in hosts[1:]
        if (host.data.get("gpuboot") or {}) != first
    ]
    return first, problems
