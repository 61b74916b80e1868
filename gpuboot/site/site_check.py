"""What a run would say to the files of a site, before they are written."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gpuboot.config import inventory_files
from gpuboot.config.inventory import DATA, Entry, plan
from gpuboot.config.problems import Problem
from gpuboot.config.settings import SettingsError
from gpuboot.preflight import docker_inventory as docker_inventory
from gpuboot.preflight import network_problems
from gpuboot.preflight.docker_problems import checks as docker_checks
from gpuboot.preflight.preflight_checks import evaluate
from gpuboot.site.draft import Site
from gpuboot.site.load_site import load


def parse_assignments(path: str, text: str) -> dict[str, Any]:
    """The values that a file of ours assigns. Raises SyntaxError, ValueError."""
    tree = ast.parse(text, path)
    return {
        ast.unparse(node.targets[0]): ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
    }


def problems(site: Site, inventory: str, group_data: str) -> tuple[list[Problem], list[Problem]]:
    """What a run would say to these files: mistakes of their own, then of the hosts they name.

    + inventory, group_data: the texts of the two files
    """
    path = f"inventories/{site.choices.name}.py"
    groups = parse_assignments(path, inventory)
    mistakes = inventory_files.groups(path, groups)
    entries, docker = _entries(groups), site.choices.docker
    try:
        settings, lock = load(parse_assignments("group_data", group_data)["gpuboot"], docker)
    except SettingsError as error:
        return [*mistakes, *error.problems], []
    nodes, node_problems = (
        docker_inventory.plan(entries) if docker else plan(entries, settings.cluster.endpoint)
    )
    mistakes += (
        node_problems if docker else [*node_problems, *network_problems.room(nodes, settings)]
    )
    if mistakes:
        return mistakes, []
    states = {host.name: host.state for host in site.hosts}
    checks = docker_checks(settings) if docker else None
    return [], evaluate(nodes, states, settings, lock, checks)


def _entries(groups: Mapping[str, Any]) -> list[Entry]:
    """The hosts of an inventory's groups as a run sees them: data of several groups is one."""
    data: dict[str, dict[str, Any]] = {}
    members: dict[str, list[str]] = {}
    for group, hosts in groups.items():
        for item in hosts:
            name, host_data = (item, {}) if isinstance(item, str) else item
            data.setdefault(name, {}).update(host_data)
            members.setdefault(name, []).append(group)
    return [
        Entry(
            name,
            tuple(members[name]),
            {key: value for key, value in values.items() if key in DATA},
            tuple(sorted(set(values) - set(DATA))),
        )
        for name, values in data.items()
    ]
