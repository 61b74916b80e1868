"""Docstrings describe the parameters and fields that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gpuboot", "deploys", "lab", "bench", "tests")
DESCRIPTION = re.compile(r"(?:^|[.;])\s*\+ ([\w, ]+):", re.MULTILINE)


def described_names(docstring: str) -> set[str]:
    """The names of lines such as `+ node, pod: what they are`."""
    matches = DESCRIPTION.findall(docstring)
    return {name.strip() for names in matches for name in names.split(",")}


def bound_names(definition: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The parameters of a function; of a class its fields, methods and what it is made with."""
    if not isinstance(definition, ast.ClassDef):
        return {node.arg for node in ast.walk(definition.args) if isinstance(node, ast.arg)}
    names: set[str] = set()
    for statement in definition.body:
        match statement:
            case ast.FunctionDef(name="__init__", args=arguments):
                names |= {node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)}
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def unknown_names(source: str) -> set[str]:
    return {
        f"{node.name}: {name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for name in described_names(ast.get_docstring(node) or "") - bound_names(node)
    }


def test_docstrings_describe_names_that_exist() -> None:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    unknown = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        for name in unknown_names(path.read_text())
    }
    assert unknown == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f(node: str) -> None:\n    """It.\n\n    + pod: the pod\n    """', {"f: pod"}),
        ('def f(node: str) -> None:\n    """It. + pod: the pod"""', {"f: pod"}),
        ('def f(node: str) -> None:\n    """It.\n\n    + node: the node\n    """', set()),
        ('class A:\n    """It.\n\n    + b, c: two\n    """\n    b: int\n', {"A: c"}),
    ],
)
def test_unknown_names_are_listed(source: str, expected: set[str]) -> None:
    assert unknown_names(source) == expected
