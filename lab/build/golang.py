"""Recipes for Go programs, all built in one module (lab/build/recipes) with one set of flags.

The Go build cache works by content: one module, one set of build tags and `-trimpath` everywhere
compile a package that several programs share only once.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lab.build.recipe import BuildContext, Recipe
from lab.build.toolchain import RECIPES, environment, go
from lab.state import LabError

# Tags only choose files, so they may be the same for all. netgo, osusergo: no C library for names
# and users. *_sd: Prometheus finds targets through Kubernetes, files, HTTP and lists, not through
# clouds. no_*: containerd without snapshotters for file systems that the lab's machines lack.
TAGS = "netgo,osusergo,remove_all_sd,enable_kubernetes_sd,no_btrfs,no_zfs,no_devmapper,no_aufs"

Prepare = Callable[[BuildContext], None]

# Set it when you change a version (lab/build/recipes/README.md): builds then add missing checksums.
UPDATE_SUMS = "GPUBOOT_UPDATE_SUMS"
LINK = ("-s", "-w")  # no symbol table, no debugging information: half the size


def common_inputs(module: Path = RECIPES) -> tuple[str | Path, ...]:
    """What every build in a module hangs on; by default in that of lab/build/recipes."""
    return module / "go.mod", module / "go.sum", repr((build_arguments(), LINK))


def go_recipe(
    name: str,
    packages: Mapping[str, str],
    *,
    seconds: float,
    variables: Mapping[str, str] | None = None,
    replace: Mapping[str, str] | None = None,
    cgo: bool = False,
    prepare: Prepare | None = None,
    inputs: Sequence[str | Path] = (),
    needs: tuple[str, ...] = (),
    module: Path = RECIPES,
) -> Recipe:
    """A recipe for Go programs.

    `packages`: program name -> import path, or `./folder` of the module in lab/build/recipes.
    `variables`: string variables set at link time (versions). `replace`: modules to be used at
    another version than the common go.mod says, for this recipe alone. `cgo`: link with the C
    library; without it programs are static. `prepare` may change the module in `BuildContext.work`
    before the build; `inputs` are what it does that by. `module`: folder of another go.mod than the
    common one.
    """
    variables, replace = variables or {}, replace or {}

    def make(build: BuildContext) -> None:
        copy_module(build, module)
        for path, version in replace.items():
            run_go(build, "mod", "edit", f"-replace={path}={path}@{version}")
        if prepare is not None:
            prepare(build)
        _build(build, packages, variables, cgo, module)

    settings = _settings(program=packages, variable=variables, replace=replace)
    recipe_inputs = (*settings, f"cgo={cgo}", *inputs, *_sources(packages))
    outputs = {program: f"bin/{program}" for program in packages}
    return Recipe(name, outputs, (*common_inputs(module), *recipe_inputs), make, needs, seconds)


def _settings(**tables: Mapping[str, str]) -> list[str]:
    """`<table> <key>=<value>` of every entry, in an order that does not depend on theirs."""
    entries = {f"{name} {key}": text for name in tables for key, text in tables[name].items()}
    return [f"{key}={text}" for key, text in sorted(entries.items())]


def _sources(packages: Mapping[str, str]) -> list[Path]:
    folders = (RECIPES / p.removeprefix("./") for p in packages.values() if p.startswith("./"))
    return [folder for folder in folders if folder.exists()]  # others are made by `prepare`


def copy_module(build: BuildContext, module: Path = RECIPES) -> None:
    """Put the module of lab/build/recipes into the build's work folder.

    + module: folder whose go.mod and go.sum take the place of the common ones
    """
    for folder in dict.fromkeys((RECIPES, module)):
        shutil.copytree(folder, build.work, dirs_exist_ok=True)


def run_go(build: BuildContext, *arguments: str, cgo: bool = False) -> None:
    """Run a go command in the build's work folder."""
    build.run([str(go()), *arguments], env=environment(cgo))


def _build(
    build: BuildContext,
    packages: Mapping[str, str],
    variables: Mapping[str, str],
    cgo: bool,
    module: Path,
) -> None:
    link = [*LINK, *(f"-X {name}={value}" for name, value in variables.items())]
    output_dir = build.work / ".made"
    output_dir.mkdir()
    output = [f"-ldflags={' '.join(link)}", f"-o={output_dir}/"]
    arguments = build_arguments()
    if os.environ.get(UPDATE_SUMS):
        arguments = [
            "-mod=mod" if argument == "-mod=readonly" else argument for argument in arguments
        ]
    run_go(build, *arguments, *output, *packages.values(), cgo=cgo)
    if os.environ.get(UPDATE_SUMS):
        _merge_sums(build.work / "go.sum", module / "go.sum")
    (build.out / "bin").mkdir()
    for program, package in packages.items():
        shutil.move(output_dir / program_name(package), build.out / "bin" / program)


def _merge_sums(output_dir: Path, common: Path) -> None:
    lines = {*common.read_text().splitlines(), *output_dir.read_text().splitlines()}
    common.write_text("\n".join(sorted(lines)) + "\n")


def build_arguments() -> list[str]:
    """`go build` with the flags that all builds have in common."""
    return [
        "build",
        "-trimpath",
        "-buildvcs=false",
        "-modcacherw",
        "-mod=readonly",
        f"-tags={TAGS}",
    ]


def program_name(package: str) -> str:
    """The name `go build` gives the program of `package`: its last part that is no version."""
    parts = package.split("/")
    return parts[-2] if re.fullmatch(r"v[2-9]\d*", parts[-1]) else parts[-1]


def module_version(module: str) -> str:
    """The version of `module` that lab/build/recipes/go.mod requires, as in `v1.37.2`.

    Replacements with another version count. Raises `LabError` when it requires none.
    """
    text = (RECIPES / "go.mod").read_text()
    path = re.escape(module)
    replaced = re.search(rf"^\t{path} => {path} (v\S+)", text, re.MULTILINE)
    required = re.search(rf"^\t{path} (v\S+)", text, re.MULTILINE)
    match = replaced or required
    if match is None:
        raise LabError(f"lab/build/recipes/go.mod does not require {module}")
    return match.group(1)


def module_dir(module: str, version: str = "") -> Path:
    """The unpacked, read-only folder of a module at the version of lab/build/recipes/go.mod.

    Fetched from the module proxy the first time. Raises `LabError` when it cannot be downloaded.
    """
    pinned = f"{module}@{version or module_version(module)}"
    command = [str(go()), "mod", "download", "-json", pinned]
    result = subprocess.run(command, cwd=RECIPES, env=environment(), capture_output=True, text=True)
    answer = json.loads(result.stdout or "{}")
    if "Dir" not in answer:
        raise LabError(
            f"{pinned} cannot be downloaded: {answer.get('Error') or result.stderr.strip()}"
        )
    return Path(answer["Dir"])
