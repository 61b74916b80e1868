"""The shape of the source: no import circles, and rooms that a newcomer can take in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gpuboot", "deploys", "lab", "bench", "tests")
FINDER = "found_in("  # its caller imports every module of the packages that it names
# of gpuboot/, from the ground up: each package imports itself and those before it
PACKAGE_ORDER = (
    "config", "plan", "templates", "hosts", "telemetry", "cluster", "monitoring", "preflight",
    "mirror", "verify", "conformance", "diagnose", "repair", "usage", "query", "docker", "site",
    "docs", "cli",
)  # fmt: skip
MOST_LINES = 300  # of a file: more is two subjects
MOST_FUNCTION_LINES = 40  # more does not fit on a screen


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def modules() -> dict[str, Path]:
    """Every module's dotted name and file; a package goes by its own name."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }


def imports(path: Path, known_modules: dict[str, Path]) -> Iterator[str]:
    """The modules that a file names in its imports, or finds, at its top or in a function."""
    imported = list(_imported_names(path, known_modules))
    yield from imported
    if FINDER in path.read_text():
        packages = tuple(
            f"{name}."
            for name in imported
            if name in known_modules and _is_package(known_modules[name])
        )
        yield from (name for name in known_modules if packages and name.startswith(packages))


def _is_package(path: Path) -> bool:
    return path.name == "__init__.py"


def _imported_names(path: Path, known_modules: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            yield name if name in known_modules else name.rpartition(".")[0]


def packages(name: str) -> Iterator[str]:
    """The packages that hold a module: Python imports them before it."""
    while name := name.rpartition(".")[0]:
        yield name


def test_no_module_imports_itself_by_way_of_others() -> None:
    known_modules = modules()
    graph = {}
    for name, path in known_modules.items():
        imported = set(imports(path, known_modules)) & set(known_modules)
        parent_packages = {
            package for imported_module in imported for package in packages(imported_module)
        } & set(known_modules)
        graph[name] = (imported | parent_packages) - {name, *packages(name)} | (
            imported & set(packages(name))
        )
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_packages_import_only_those_below_them() -> None:
    known_modules = modules()
    entries = {name.split(".")[1] for name in known_modules if name.startswith("gpuboot.")}
    assert entries == {*PACKAGE_ORDER}
    upward = [
        f"{name} -> {imported_module}"
        for name, path in known_modules.items()
        if name.startswith("gpuboot.")
        for imported_module in imports(path, known_modules)
        if imported_module.startswith("gpuboot.")
        and PACKAGE_ORDER.index(name.split(".")[1])
        < PACKAGE_ORDER.index(imported_module.split(".")[1])
    ]
    assert upward == []


def test_operations_and_facts_take_arguments_and_never_the_context_of_the_run() -> None:
    known_modules = modules()
    reaching_up = [
        f"{name} -> {imported_module}"
        for name, path in known_modules.items()
        if name.startswith(("deploys.parts", "deploys.parts", "deploys.engine"))
        for imported_module in imports(path, known_modules)
        if imported_module.startswith("deploys.run")
    ]
    assert sorted(reaching_up) == []


def source() -> Iterator[tuple[str, str]]:
    """What people write: each file's path in the repository, and its text."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in {".py", ".go", ".c"}:
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def long_functions(path: str) -> Iterator[str]:
    for node in ast.walk(tree(ROOT / path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MOST_FUNCTION_LINES:
                yield f"{path} {node.name}"


def test_files_are_short() -> None:
    long = {path for path, text in source() if len(text.splitlines()) > MOST_LINES}
    assert long == set(), "split them by meaning"


def test_functions_are_short() -> None:
    python = (path for path, _ in source() if path.endswith(".py"))
    long = {name for path in python for name in long_functions(path)}
    assert long == set(), "split them by meaning"
