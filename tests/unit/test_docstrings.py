"""Docstrings describe the parameters and fields that there are, and begin with their subject."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gpuboot", "deploys", "lab", "bench", "tests")
SUBJECT_PACKAGES = ("gpuboot", "deploys", "lab", "bench")
# a docstring that begins with one of these names neither a thing nor what is done
RIDDLE = re.compile(
    r"\W*(Of|By|In|With|As|To|From|That|On|At|But|So|Not|Than|For|Is|Are|And|Or|Be"
    r"|Which|It|These|Those|They|There|One|Some|Such)\b"
)
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


def riddles(source: str) -> set[str]:
    """First lines of the docstrings of modules, classes and functions that `RIDDLE` matches."""
    docstrings = (
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {text.partition("\n")[0] for text in docstrings if RIDDLE.match(text)}


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


def test_docstrings_begin_with_a_thing_or_what_is_done() -> None:
    paths = [path for package in SUBJECT_PACKAGES for path in (ROOT / package).rglob("*.py")]
    riddles_found = {
        f"{path.relative_to(ROOT)}: {line}" for path in paths for line in riddles(path.read_text())
    }
    assert riddles_found == set(), (
        "begin with what it returns, does or is: `The pods that ...`, `Write ...`"
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f() -> None:\n    """Of the pod on every node."""\n', {"Of the pod on every node."}),
        ('class A:\n    """One alert.\n\n    + b: its name\n    """\n', {"One alert."}),
        ('"""Which pods move."""\n', {"Which pods move."}),
        ('async def f() -> None:\n    """It begins."""\n', {"It begins."}),
        ('def f() -> None:\n    """The values for the pod."""\n', set()),
        ('def f() -> None:\n    """Offer one pod."""\n', set()),
        ("def f() -> None: ...\n", set()),
    ],
)
def test_riddles_are_listed(source: str, expected: set[str]) -> None:
    assert riddles(source) == expected
