"""The one order of all hosts' operations."""

from __future__ import annotations

from collections.abc import Callable
from graphlib import CycleError
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import pyinfra
import pytest
from pyinfra.api import arguments
from pyinfra.api.state import State
from pyinfra.api.util import get_operation_order_from_stack

from deploys.engine.order import call_lines, install, merged

LINES = {"init": (1,), "label": (2,), "join": (3,), "wait": (4,)}


def test_what_stands_first_in_the_deploy_comes_first() -> None:
    assert merged([["join"], ["init", "label", "wait"]], LINES) == ["init", "label", "join", "wait"]


def test_the_order_of_a_host_is_kept_whatever_the_lines() -> None:
    assert merged([["wait", "init"], ["join"]], LINES) == ["join", "wait", "init"]


def test_hosts_that_contradict_each_other_are_an_error() -> None:
    with pytest.raises(CycleError):
        merged([["init", "join"], ["join", "init"]], LINES)


@pytest.mark.parametrize("is_cli", [True, False])
@pytest.mark.parametrize("deploy", ["deploy.py", None, "absent.py"])
def test_the_lines_of_a_call_are_those_that_pyinfra_finds(
    monkeypatch: pytest.MonkeyPatch, is_cli: bool, deploy: str | None
) -> None:
    monkeypatch.setattr(pyinfra, "is_cli", is_cli)
    state = cast(State, SimpleNamespace(current_deploy_filename=deploy, current_op_file_number=7))
    scope: dict[str, Any] = {}
    source = "def call(function, state):\n    def inner():\n        return function(state)\n\n"
    exec(compile(source + "    return inner()\n", "deploy.py", "exec"), scope)
    call: Callable[..., list[int]] = scope["call"]
    lines = [call(function, state) for function in (call_lines, get_operation_order_from_stack)]
    assert lines[0] == lines[1]
    if deploy == "deploy.py":
        assert lines[0] == [*([7] if is_cli else []), 5, 3]


def test_operations_of_a_run_take_the_fast_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    module, name = import_module("pyinfra.api.operation"), "get_operation_order_from_stack"
    monkeypatch.setattr(module, name, get_operation_order_from_stack)
    monkeypatch.setattr(arguments, "all_global_arguments", arguments.all_global_arguments)
    install(cast(State, SimpleNamespace()))
    assert getattr(module, name) is call_lines
    assert arguments.all_global_arguments() is arguments.all_global_arguments()
