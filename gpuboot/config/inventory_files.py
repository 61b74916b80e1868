"""What can be wrong with the files that a run is started with, before any host is connected to."""

import difflib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpuboot.config.problems import Problem

_EXAMPLE = '[("gpu1.example.com", {"gpus": 8})]'
# names that mean something to gpuboot or pyinfra, so a value that is no group is a mistake
_GROUPS = ("control_plane", "workers", "gpu_hosts", "monitor", "all")


def missing(inventory: str, folder: Path) -> Problem | None:
    """The problem with an inventory that is named as a file and is none.

    + inventory: the inventory as it stands on the command line: a file, or hosts
    + folder: where relative paths begin
    """
    path = folder / inventory
    if path.is_dir():
        return Problem(
            "",
            f"{inventory} is a folder, not an inventory file",
            _similar_inventory(inventory, folder),
        )
    is_file_name = (
        inventory.endswith(".py") or (folder / "inventories" / f"{inventory}.py").is_file()
    )
    if path.exists() or not is_file_name or "@" in inventory or "," in inventory:
        return None
    return Problem(
        "", f"there is no inventory file {inventory}", _similar_inventory(inventory, folder)
    )


def no_hosts(inventory: str, folder: Path) -> Problem:
    """The problem with an inventory that names no host, or that pyinfra could not find."""
    remedy = (
        "name control_plane and workers in it, as inventories/example.py does"
        if (folder / inventory).exists()
        else _similar_inventory(inventory, folder)
    )
    return Problem("", f"the inventory {inventory} has no hosts", remedy)


def _similar_inventory(inventory: str, folder: Path) -> str:
    names = sorted(path.stem for path in (folder / "inventories").glob("*.py"))
    near = difflib.get_close_matches(Path(inventory).stem, names, n=1)
    if near:
        return f"did you mean inventories/{near[0]}.py?"
    return (
        "write one with `gpuboot init`, or copy inventories/example.py; and run this in the folder "
        "of the gpuboot project"
    )


def syntax(files: Collection[Path]) -> list[Problem]:
    """A problem for each Python file that cannot be read or parsed."""
    problems = []
    for path in files:
        try:
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
        except SyntaxError as error:
            line = (error.text or "").strip()
            place = f"{path}, line {error.lineno}"
            problems.append(Problem("", f"{place}: {error.msg}: {line}", "correct that line"))
        except (OSError, ValueError) as error:
            problems.append(Problem("", f"{path}: {error}", "make it a readable Python file"))
    return problems


def raised(path: str, line: int, error: BaseException) -> Problem:
    """The problem with a file whose code ended with an exception."""
    message = f"{type(error).__name__}: {error}"
    return Problem("", f"{path}, line {line}: {message}", "correct that line, or what it needs")


def groups(path: str, values: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the groups of hosts in an inventory file.

    pyinfra takes some of it for something else: a pair without brackets for hosts of one letter,
    a list with one strange item for no group at all.

    + values: the file's names at top level
    """
    return [
        Problem("", f"{path}: {name} {cause}", remedy)
        for name, value in values.items()
        if not name.startswith("_")
        for cause, remedy in _group(name, value)
    ]


def _group(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, (list, tuple)):
        if name in _GROUPS:
            yield f"is no list of hosts, but {_kind(value)}", f"write {name} = {_EXAMPLE}"
        return
    if isinstance(value, tuple):
        pair = len(value) == 2 and isinstance(value[0], (list, tuple))
        if not pair or not isinstance(value[1], dict):
            yield "is a tuple, but not of a list of hosts and a dict", f"write {name} = {_EXAMPLE}"
            return
        value = value[0]
    names = []
    for item in value:
        if isinstance(item, str):
            names.append(item)
        elif _is_pair(item):
            names.append(item[0])
        else:
            yield f"has an item that is no host: {_describe(item)}", f"write {name} = {_EXAMPLE}"
    for host in sorted({host for host in names if names.count(host) > 1}):
        yield f"names {host} twice", "give each machine a line and a name of its own"
    for host in names:
        yield from _name(host)


def _name(host: str) -> Iterator[tuple[str, str]]:
    """What a host's name should not hold, since it stands in its data."""
    if not host:
        yield "has a host without a name", 'write ("gpu1.example.com", {"gpus": 8})'
    user, at, address = host.partition("@")
    if user and at:
        yield f"names {host} with its user", f'write ("{address}", {{"ssh_user": "{user}"}})'
    bare, _, port = host.rpartition(":")
    if port.isdecimal() and bare and ":" not in bare:
        yield f"names {host} with its port", f'write ("{bare}", {{"ssh_port": {port}}})'


def _is_pair(item: Any) -> bool:
    return (
        isinstance(item, tuple)
        and len(item) == 2
        and isinstance(item[0], str)
        and isinstance(item[1], dict)
    )


def _describe(item: Any) -> str:
    """An item without the data that a host may have, which can be secret."""
    if isinstance(item, tuple) and item and isinstance(item[0], str):
        kinds = ", ".join(_kind(part) for part in item[1:]) or "nothing"
        return f"{item[0]!r} with {kinds} instead of a dict"
    return _kind(item)


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def unread(
    data: Mapping[str, bool], groups: Collection[str], files: Collection[str], has_settings: bool
) -> tuple[list[Problem], list[str]]:
    """Files of group_data that nothing reads: problems, and lines of warning.

    + data: path of each file -> whether it holds `gpuboot` settings
    + groups: groups that have hosts in this inventory
    + files: names of all inventory files there are, without .py
    + has_settings: whether any host of this inventory has `gpuboot` settings
    """
    problems, warnings = [], []
    for path, settings in data.items():
        stem = Path(path).stem
        if stem in {"all", *groups, *files}:
            continue
        group_names = ", ".join(sorted(groups)) or "none"
        cause = (
            f"{path} is read by no host: {stem} is no group of this inventory "
            f"(groups: {group_names})"
        )
        if settings and not has_settings:
            remedy = "name it like the inventory file; without it every setting is the default"
            problems.append(Problem("", cause, remedy))
        else:
            warnings.append(f"{cause}, and no inventory is called {stem}")
    return problems, warnings
