"""metrics-server, prometheus-adapter, and the stand-in of what approves kubelets' certificates."""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.build.golang import build_arguments, go_recipe, module_dir, run_go
from lab.build.recipe import BuildContext, Recipe

METRICS_SERVER = "sigs.k8s.io/metrics-server"
METRICS_SERVER_VERSION = "v0.9.0"
APPROVER_VERSION = "v1.2.14"  # whose settings and messages the stand-in has
_APPROVER = Path(__file__).parents[1] / "metrics" / "csr-approver"
ADAPTER = "prometheus-adapter"
ADAPTER_VERSION = "v0.12.0"
_ADAPTER_MODULE = _APPROVER.parent / ADAPTER
# Not in the common go.mod and go.sum: a change of those builds every program anew.
_SUMS = f"""\
{METRICS_SERVER} {METRICS_SERVER_VERSION} h1:nlqqZ2H0Xfko8eJC/1qaNVVT17hu4rxndkOi22KTZ4w=
{METRICS_SERVER} {METRICS_SERVER_VERSION}/go.mod h1:3TBautywhoi98sWsSf7jmkz5otEFeoRmbGpXf4gut48=
"""


def recipes() -> list[Recipe]:
    """All recipes of this file."""
    return [_metrics_server(), _approver()]


def _metrics_server() -> Recipe:
    """metrics-server from upstream's source, with the common versions of its imports."""

    def required(build: BuildContext) -> None:
        run_go(build, "mod", "edit", f"-require={METRICS_SERVER}@{METRICS_SERVER_VERSION}")
        with (build.work / "go.sum").open("a") as sums:
            sums.write(_SUMS)

    return go_recipe(
        "metrics-server",
        {"metrics-server": f"{METRICS_SERVER}/cmd/metrics-server"},
        variables={"k8s.io/client-go/pkg/version.gitVersion": METRICS_SERVER_VERSION},
        prepare=required,
        inputs=(_SUMS,),
        seconds=60,
    )


def adapter() -> Recipe:
    """prometheus-adapter, of tests alone: it is not in `recipes`."""
    packages = {ADAPTER: f"sigs.k8s.io/{ADAPTER}/cmd/adapter"}
    return go_recipe(ADAPTER, packages, module=_ADAPTER_MODULE, seconds=240)


def adapter_manifests() -> Path:
    """Upstream's folder of the adapter's manifests."""
    return module_dir(f"sigs.k8s.io/{ADAPTER}", ADAPTER_VERSION) / "deploy" / "manifests"


def _approver() -> Recipe:
    """The lab's own: no module proxy has upstream's module."""
    program = "sim-csr-approver"

    def make(build: BuildContext) -> None:
        shutil.copytree(_APPROVER, build.work, dirs_exist_ok=True)
        (build.out / "bin").mkdir()
        output = f"-o={build.out}/bin/{program}"
        run_go(build, *build_arguments(), "-ldflags=-s -w", output, ".")

    inputs = (_APPROVER, repr(build_arguments()))
    return Recipe(program, {program: f"bin/{program}"}, inputs, make, seconds=5)
