"""No phase of deploys/site.py calls a program that a later phase of the same run installs."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from gpuboot.cluster import node_gate
from gpuboot.hosts import dcgm_engine

ROOT = Path(__file__).resolve().parents[2]
# program -> the module of its name, the constant, and the phase that installs it
PROGRAMS = {
    node_gate.PROGRAM: ("gpuboot.cluster.node_gate", "PROGRAM", "gate"),
    dcgm_engine.PROGRAM: ("gpuboot.hosts.dcgm_engine", "PROGRAM", "dcgm"),
}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())


def exists(module: str) -> bool:
    return (ROOT / f"{module.replace('.', '/')}.py").is_file()


@cache
def imports(module: str) -> dict[str, str]:
    """Name in a module -> what it imports by it, dotted."""
    return {
        alias.asname or alias.name: f"{item.module}.{alias.name}"
        for item in ast.walk(tree(module))
        if isinstance(item, ast.ImportFrom) and item.module
        for alias in item.names
    }


def reached(module: str) -> set[str]:
    """A module of deploys/ and all those of operations and libraries that it imports."""
    visited, todo = set(), [module]
    while todo:
        name = todo.pop()
        if name in visited:
            continue
        visited.add(name)
        for target in imports(name).values():
            for near in (target, target.rpartition(".")[0]):
                if near.startswith(("deploys.parts.", "deploys.engine.")) and exists(near):
                    todo.append(near)
    return visited


def names(module: str, of: str, constant: str) -> bool:
    """Whether a module names a constant of another."""
    module_imports = imports(module)
    return any(
        (isinstance(item, ast.Attribute) and item.attr == constant
         and isinstance(item.value, ast.Name) and module_imports.get(item.value.id) == of)
        or (isinstance(item, ast.Name) and module_imports.get(item.id) == f"{of}.{constant}")
        for item in ast.walk(tree(module))
    )  # fmt: skip


def phases() -> list[tuple[str, str]]:
    """Function and module of each phase, in the order of deploys/site.py."""
    site_imports = imports("deploys.site")
    calls = (
        item.value.func.id
        for item in tree("deploys.site").body
        if isinstance(item, ast.Expr)
        and isinstance(item.value, ast.Call)
        and isinstance(item.value.func, ast.Name)
    )
    return [
        (name, site_imports[name].rpartition(".")[0])
        for name in calls
        if site_imports[name].count("phases.")
    ]


def test_phases_are_those_of_a_run() -> None:
    order = [name for name, _ in phases()]
    assert order.index("node_upgrades") < order.index("gate") < order.index("rollout")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_called_by_no_phase_before_the_one_that_installs_it(program: str) -> None:
    of, constant, installer = PROGRAMS[program]
    order = phases()
    place = [name for name, _ in order].index(installer)
    assert any(names(module, of, constant) for module in reached(order[place][1]))
    early = {
        f"{phase} by {module}"
        for phase, start in order[:place]
        for module in reached(start)
        if names(module, of, constant)
    }
    assert early == set()
