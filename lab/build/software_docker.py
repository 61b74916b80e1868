"""Docker for the lab's machines without Kubernetes, built only when such a lab is asked for.

Upstream's source, each program in a module of its own (lab/build/docker): what they share with the
lab's other programs is of other versions. Left out: buildx, docker-init (`docker run --init`), and
of docker-ce whatever swarm, plugins and rootless mode want. The command line's one module that no
proxy serves says whether macOS translates it, and has a stand-in in lab/build/docker/cli/rosetta.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from lab.build.golang import LINK, build_arguments, module_dir, program_name, run_go
from lab.build.recipe import BuildContext, Recipe

MODULES = Path(__file__).parent / "docker"
ENGINE = "github.com/moby/moby/v2"
CLI = "github.com/docker/cli"
# the newest engine that the module proxy has (moby/moby/v2 v2.0.0-beta.24), with the command line
# of its release; compose 5.7.0 needs Go 1.26.10
DOCKER = "29.8.1"
COMPOSE = "5.5.1"


def recipes() -> list[Recipe]:
    """All recipes of this file."""
    return [engine(), cli(), compose()]


def engine() -> Recipe:
    """dockerd, and the program that holds published ports."""
    programs = {name: f"{ENGINE}/cmd/{name}" for name in ("dockerd", "docker-proxy")}
    variables = {f"{ENGINE}/dockerversion.Version": DOCKER}
    return _recipe("docker-engine", "engine", programs, variables, 240)


def compose() -> Recipe:
    """Docker's compose plugin; it runs by itself as well."""
    module = "github.com/docker/compose/v5"
    variables = {f"{module}/internal.Version": f"v{COMPOSE}"}
    return _recipe("docker-compose", "compose", {"docker-compose": f"{module}/cmd"}, variables, 90)


def check() -> Recipe:
    """What `docker compose config` says of a file, for tests that cannot wait for the whole."""
    return _recipe("compose-check", "compose", {"check": "./check"}, {}, 20)


def cli() -> Recipe:
    """The docker command, from its own tree, whose go.mod upstream keeps as vendor.mod."""

    def make(build: BuildContext) -> None:
        tree = module_dir(CLI, f"v{DOCKER}+incompatible")
        shutil.copytree(tree, build.work, dirs_exist_ok=True)
        shutil.copytree(MODULES / "cli", build.work, dirs_exist_ok=True)
        variables = {f"{CLI}/cli/version.Version": DOCKER}
        _build(build, {"docker": "./cmd/docker"}, variables)

    return Recipe(
        name="docker-cli",
        outputs={"docker": "bin/docker"},
        inputs=(MODULES / "cli", DOCKER, repr((build_arguments(), LINK))),
        make=make,
        seconds=60,
    )


def _recipe(
    name: str,
    folder: str,
    programs: Mapping[str, str],
    variables: Mapping[str, str],
    seconds: float,
) -> Recipe:
    def make(build: BuildContext) -> None:
        shutil.copytree(MODULES / folder, build.work, dirs_exist_ok=True)
        _build(build, programs, variables)

    description = repr((build_arguments(), LINK, dict(programs), dict(variables)))
    return Recipe(
        name=name,
        outputs={program: f"bin/{program}" for program in programs},
        inputs=(MODULES / folder, description),
        make=make,
        seconds=seconds,
    )


def _build(build: BuildContext, programs: Mapping[str, str], variables: Mapping[str, str]) -> None:
    link = " ".join([*LINK, *(f"-X {name}={value}" for name, value in variables.items())])
    (build.out / "bin").mkdir()
    for program, package in programs.items():
        binary = build.work / f".made-{program}" / program_name(package)
        run_go(build, *build_arguments(), f"-ldflags={link}", f"-o={binary}", package)
        shutil.move(binary, build.out / "bin" / program)
