"""The shape of the source: no import circles, and rooms that a newcomer can take in."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gpuboot", "deploys", "lab", "bench", "tests")
FINDER = "found_in("  # its caller imports every module of the packages that it names
# of gpuboot/, from the ground up: each package imports itself and those before it
PACKAGE_ORDER = (
    "config", "plan", "templates", "hosts", "telemetry", "cluster", "monitoring", "preflight",
    "mirror", "verify", "diagnose", "repair", "usage", "conformance", "query", "docker", "site",
    "docs", "cli",
)  # fmt: skip
# of deploys/, likewise; its files are above all of them
DEPLOY_ORDER = ("engine", "parts", "run", "phases")
# modules that every part may have, by itself or after its subject: dnf_fact, dnf_operations
PART_MODULES = {"fact": re.compile(r"^class \w+\((Framed\[|OneLine\))", re.MULTILINE),
                "operations": re.compile(r"^@operation\(", re.MULTILINE)}  # fmt: skip
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


def package_imports(house: str) -> Iterator[tuple[str, str]]:
    """A module in a package of a house, and one of the house that it imports."""
    known_modules = modules()
    for name, path in known_modules.items():
        if name.startswith(f"{house}."):
            for imported in imports(path, known_modules):
                if imported.startswith(f"{house}."):
                    yield name, imported


def upward_imports(house: str, order: Sequence[str]) -> list[str]:
    """Imports of what stands later in the order; what is not in it stands above all."""

    def rank(name: str) -> int:
        package = name.split(".")[1]
        return order.index(package) if package in order else len(order)

    pairs = package_imports(house)
    return [f"{name} -> {imported}" for name, imported in pairs if rank(name) < rank(imported)]


def test_packages_import_only_those_below_them() -> None:
    assert {name.split(".")[1] for name in modules() if name.startswith("gpuboot.")} == {
        *PACKAGE_ORDER
    }
    assert upward_imports("gpuboot", PACKAGE_ORDER) == []


def test_deploys_import_only_those_below_them() -> None:
    packages = {path.parent.name for path in (ROOT / "deploys").glob("*/__init__.py")}
    assert packages == {*DEPLOY_ORDER}
    assert upward_imports("deploys", DEPLOY_ORDER) == []


def test_parts_import_one_another_without_circles() -> None:
    graph: dict[str, set[str]] = defaultdict(set)
    for name, imported in package_imports("deploys"):
        part, other_part = (item.split(".")[2:3] for item in (name, imported))
        is_in_parts = name.startswith("deploys.parts.") and imported.startswith("deploys.parts.")
        if is_in_parts and part != other_part:
            graph[part[0]].update(other_part)
    assert len(graph) > 10
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_facts_and_operations_of_a_part_are_in_modules_of_that_name() -> None:
    for path in (ROOT / "deploys" / "parts").rglob("*.py"):
        kind = path.stem.rpartition("_")[2]
        text = path.read_text()
        kinds = {name for name, sign in PART_MODULES.items() if sign.search(text)}
        assert kinds == {kind} & set(PART_MODULES), path.relative_to(ROOT)


def test_a_file_name_of_deploys_is_that_of_one_module() -> None:
    stems = Counter(path.stem for path in (ROOT / "deploys").rglob("*.py"))
    shared = {name for name, count in stems.items() if count > 1}
    assert shared <= {"__init__", *PART_MODULES}


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
