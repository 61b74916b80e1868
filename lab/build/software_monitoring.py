"""The monitoring software that the lab runs, as recipes: Prometheus, its operator, Alertmanager.

Upstream's source at the versions of lab/build/recipes/go.mod, like everything in `software.py`.
"""

from __future__ import annotations

import gzip
import shutil

from lab.build.golang import (
    build_arguments,
    common_inputs,
    copy_module,
    go_recipe,
    module_dir,
    module_version,
    run_go,
)
from lab.build.recipe import BuildContext, Recipe
from lab.build.toolchain import RECIPES, environment, go

ALERTMANAGER = "github.com/prometheus/alertmanager"
OPERATOR = "github.com/prometheus-operator/prometheus-operator"
PROMETHEUS = "github.com/prometheus/prometheus"

PROMETHEUS_VERSION = "3.16.0"  # its module v0.316.0: Go's rules forbid "v3" without a path /v3
_STAMP = "github.com/prometheus/common/version.Version"


def recipes() -> list[Recipe]:
    """All recipes of this file, those that others need first."""
    return [_operator_client(), _operator(), _prometheus(), _alertmanager()]


def _operator() -> Recipe:
    return go_recipe(
        "prometheus-operator",
        {
            "prometheus-operator": f"{OPERATOR}/cmd/operator",
            "prometheus-config-reloader": f"{OPERATOR}/cmd/prometheus-config-reloader",
        },
        variables={_STAMP: module_version(OPERATOR).removeprefix("v")},
        # prom-label-proxy 0.15.0 wants options of that parser, which 3.16 has no more
        replace={PROMETHEUS: "v0.314.0", "github.com/go-openapi/strfmt": "v0.27.4"},
        prepare=_use_operator_client,
        needs=("operator-client",),
        seconds=60,
    )


def _prometheus() -> Recipe:
    """Prometheus that finds targets by Kubernetes, files, HTTP and lists; no pages for browsers.

    The pages are no part of the module. Every other way to find targets is left out.
    """
    return go_recipe(
        "prometheus",
        {name: f"{PROMETHEUS}/cmd/{name}" for name in ("prometheus", "promtool")},
        variables={_STAMP: PROMETHEUS_VERSION},
        seconds=75,
    )


# What the lab's Alertmanager shows instead of upstream's pages, which have to be compiled from Elm.
_NO_PAGES = """<!doctype html>
<title>Alertmanager</title>
<p>Alertmanager of the gpuboot lab, real but for its pages: they are no part of its Go module.
Its API is at <a href="api/v2/status">/api/v2/</a>; <code>amtool</code> speaks to it.</p>
"""


def _alertmanager() -> Recipe:
    return go_recipe(
        "alertmanager",
        {name: f"{ALERTMANAGER}/cmd/{name}" for name in ("alertmanager", "amtool")},
        variables={_STAMP: module_version(ALERTMANAGER).removeprefix("v")},
        replace={"github.com/KimMachineGun/automemlimit": "v0.7.5"},  # 1.x: another interface
        prepare=_without_pages,
        inputs=(_NO_PAGES,),
        seconds=30,
    )


def _without_pages(build: BuildContext) -> None:
    """Copy Alertmanager's module, with a folder of pages, which it embeds and does not contain."""
    source = build.work / "alertmanager"
    shutil.copytree(module_dir(ALERTMANAGER), source, copy_function=shutil.copyfile)
    pages = source / "ui/app/dist"
    pages.mkdir()
    (pages / "index.html.gz").write_bytes(gzip.compress(_NO_PAGES.encode(), mtime=0))
    run_go(build, "mod", "edit", f"-replace={ALERTMANAGER}=./alertmanager")


def _operator_client() -> Recipe:
    """prometheus-operator's sub-module of generated code, generated: no module proxy has it."""
    return Recipe(
        name="operator-client",
        outputs={"operator-client": "client"},
        inputs=(*common_inputs(), GENERATORS, str(_generator_commands())),
        make=_generate_client,
        seconds=15,
    )


GENERATORS = "k8s.io/code-generator/cmd"
_APIS = f"{OPERATOR}/pkg/apis/monitoring"
_TYPES = [f"{_APIS}/{version}" for version in ("v1", "v1alpha1", "v1beta1")]
_CLIENT = f"{OPERATOR}/pkg/client"


def _generator_commands() -> list[list[str]]:
    """The generators with the arguments of the target k8s-client-gen in upstream's Makefile."""
    applies, listers = f"{_CLIENT}/applyconfiguration", f"{_CLIENT}/listers"
    inputs = [f"--input=monitoring/{version}" for version in ("v1", "v1beta1", "v1alpha1")]
    client = [f"--apply-configuration-package={applies}", f"--input-base={OPERATOR}/pkg/apis"]
    informers = [f"--versioned-clientset-package={_CLIENT}/versioned"]
    return [
        ["applyconfiguration-gen", *_output("applyconfiguration"), *_TYPES],
        ["client-gen", *client, "--clientset-name=versioned", *_output(""), *inputs],
        ["lister-gen", *_output("listers"), *_TYPES],
        [
            "informer-gen",
            *informers,
            f"--listers-package={listers}",
            *_output("informers"),
            *_TYPES,
        ],
    ]


def _output(part: str) -> list[str]:
    package, folder = f"{_CLIENT}/{part}".rstrip("/"), f"client/{part}".rstrip("/")
    return [f"--output-pkg={package}", f"--output-dir={folder}", "--go-header-file=header"]


def _generate_client(build: BuildContext) -> None:
    copy_module(build)
    commands = _generator_commands()
    names = [f"{GENERATORS}/{command[0]}" for command in commands]
    run_go(build, *build_arguments(), f"-o={build.work}/bin/", *names)
    (build.work / "header").write_text("")
    shutil.copytree(RECIPES / "operator-client", build.work / "client")
    # the generators load the API types through `go list`, which must be the same go
    go_environment = environment()
    path = f"{go().parent}:{go_environment['PATH']}"
    for command in commands:
        program = build.work / "bin" / command[0]
        build.run([str(program), *command[1:]], env={**go_environment, "PATH": path})
    shutil.copytree(build.work / "client", build.out / "client")


def _use_operator_client(build: BuildContext) -> None:
    generated = build.needed["operator-client"] / "client"
    shutil.copytree(generated, build.work / "operator-client", dirs_exist_ok=True)
