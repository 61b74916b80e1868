"""Builds all programs of the lab into the store: `python -m lab.build` does it by hand.

What is in the store is not built again; with everything there this takes under a second.
"""

from __future__ import annotations

import re
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab import failures, preflight
from lab.build import debian_programs as debian
from lab.build import software
from lab.build.progress import BuildQueue, BuildTimes, Progress, duration
from lab.build.recipe import Recipe, is_made, make
from lab.build.store import digest, folder
from lab.build.toolchain import go
from lab.gpusim import builds as simulated
from lab.state import LabError, cache_dir, lock


def recipes() -> list[Recipe]:
    """Every recipe, those that others need first."""
    return [debian.recipe(), *software.recipes(), *simulated.recipes()]


def build_all(
    progress: Progress, names: Sequence[str] = (), also: Sequence[Recipe] = ()
) -> dict[str, Path]:
    """Everything the lab compiles, or takes from Debian as a program: name -> file.

    `progress` gets lines for people. `names`: only these recipes and what they need.
    `also`: recipes that only some labs want. Raises
    `LabError` with the end of the log when a build fails. Nothing half-made stays in the store.
    """
    selected = [*choose(recipes(), names), *also]
    folders, missing = _in_store(selected)
    if missing:
        with lock(f"builds-{digest(str(cache_dir()))}"):  # the machine's cores serve one at a time
            folders, missing = _in_store(selected)
            if missing:
                _build(missing, folders, progress)
    return outputs(selected, folders)


def choose(available: Sequence[Recipe], names: Sequence[str]) -> list[Recipe]:
    """The recipes called `names` and those they need, in order; all of them for no names."""
    by_name = {recipe.name: recipe for recipe in available}
    if unknown := [name for name in names if name not in by_name]:
        raise LabError(f"no build is called {', '.join(unknown)}; there are: {', '.join(by_name)}")
    selected: set[str] = set()
    queue = list(names or by_name)
    while queue:
        name = queue.pop()
        if name not in selected:
            selected.add(name)
            queue += by_name[name].needs
    return [recipe for recipe in available if recipe.name in selected]


def outputs(selected: Sequence[Recipe], folders: Mapping[str, Path]) -> dict[str, Path]:
    """Program name -> file, of all `selected`. Raises `LabError` when two make the same name."""
    programs: dict[str, Path] = {}
    for recipe in selected:
        for name, path in recipe.outputs.items():
            if name in programs:
                raise LabError(f"two builds make {name!r}; the second is {recipe.name}")
            programs[name] = folders[recipe.name] / path
    return programs


def _in_store(selected: Sequence[Recipe]) -> tuple[dict[str, Path], list[Recipe]]:
    """The folders that are there, by recipe, and the recipes that have to be built."""
    folders: dict[str, Path] = {}
    missing: list[Recipe] = []
    for recipe in selected:
        if all(name in folders for name in recipe.needs) and is_made(recipe, folders):
            folders[recipe.name] = make(recipe, folders)
        else:
            missing.append(recipe)
    return folders, missing


def _build(missing: Sequence[Recipe], folders: dict[str, Path], progress: Progress) -> None:
    go()  # says at once when there is none, not after the first download
    times = BuildTimes(cache_dir() / "times.json")
    if not (cache_dir() / "go" / "build").exists():
        times.seconds.clear()  # they were taken with everything compiled: far too short
    queue = BuildQueue({recipe.name: recipe.seconds for recipe in missing}, progress, times)
    for recipe in missing:
        with queue.step(recipe.name):
            folders[recipe.name] = make(recipe, folders)
    progress(queue.table())


def prune() -> list[Path]:
    """Remove what earlier versions of the recipes left in the store; returns what was removed."""
    every = recipes()
    with lock(f"builds-{digest(str(cache_dir()))}"):
        current, _ = _in_store(every)
        pattern = re.compile(rf"({'|'.join(recipe.name for recipe in every)})-[0-9a-f]{{12}}")
        present = [path for path in folder("").iterdir() if pattern.fullmatch(path.name)]
        old = sorted(set(present) - set(current.values()))
        for path in old:
            shutil.rmtree(path)
    return old


def main(arguments: Sequence[str]) -> int:
    """`python -m lab.build [NAME…]`: build, and list the programs. `--prune`: remove old ones."""
    if list(arguments) == ["--prune"]:
        print(*prune(), sep="\n")
        return 0
    started = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing half-made stays
    try:
        programs = build_all(lambda line: print(line, file=sys.stderr, flush=True), arguments)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:
        print(failures.report(error), file=sys.stderr)
        return 1
    if not arguments:
        preflight.note_complete()
    for name, path in sorted(programs.items()):
        size = path.stat().st_size / 1e6 if path.is_file() else 0
        print(f"{name:32} {size:7.1f} MB  {path}")
    print(f"{len(programs)} programs, {duration(time.monotonic() - started)}", file=sys.stderr)
    return 0
