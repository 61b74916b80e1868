"""Components of AI conformance that tests alone run: Kueue, and Traefik as a Gateway.

Each is built in a copy of upstream's module, by the versions of its own go.mod.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.build.golang import LINK, build_arguments, module_dir, run_go
from lab.build.recipe import BuildContext, Recipe

KUEUE, KUEUE_VERSION = "sigs.k8s.io/kueue", "v0.17.0"
TRAEFIK, TRAEFIK_VERSION = "github.com/traefik/traefik/v3", "v3.7.13"
GATEWAY_API, GATEWAY_API_VERSION = "sigs.k8s.io/gateway-api", "v1.6.1"  # that Traefik is built with
_LEGO, _LEGO_VERSION = "github.com/go-acme/lego/v5", "v5.4.1"
# Upstream's version of this fork is not served; an earlier one has all that Traefik calls.
_AUTH, _AUTH_VERSION = "github.com/containous/go-http-auth", "v0.4.1-0.20200324110947-a37a7636d23e"
_AUTH_SUMS = f"""\
{_AUTH} {_AUTH_VERSION} h1:D+uTEzDZc1Fhmd0Pq06c+O9+KkAyExw0eVmu/NOqaHU=
{_AUTH} {_AUTH_VERSION}/go.mod h1:s8kLgBQolDbsJOPVIGCEEv9zGAKUUf/685Gi0Qqg8z8=
"""
_EXTENSION = "pkg/config/dynamic/ext"  # a module of its own, which no proxy has
_EXTENSION_TYPES = "package ext\n\ntype HTTP struct{}\n\ntype Router struct{}\n"
# Providers of DNS for certificates, which no test asks for, are two thirds of Traefik.
_NO_PROVIDERS = """\
package dns

import (
	"fmt"

	"github.com/go-acme/lego/v5/challenge"
)

func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, fmt.Errorf("unrecognized DNS provider: %s", name)
}
"""


def kueue() -> Recipe:
    """Kueue's controller."""

    def make(build: BuildContext) -> None:
        _copy(module_dir(KUEUE, KUEUE_VERSION), build.work)
        _build(build, "kueue")

    inputs = (KUEUE_VERSION, repr(build_arguments()))
    return Recipe("kueue", {"kueue": "bin/kueue"}, inputs, make, seconds=400)


def traefik() -> Recipe:
    """Traefik without its web interface and providers of DNS."""

    def make(build: BuildContext) -> None:
        _copy(module_dir(TRAEFIK, TRAEFIK_VERSION), build.work)
        extension = build.work / _EXTENSION
        extension.mkdir()
        (extension / "go.mod").write_text("module github.com/traefik/traefik/dynamic/ext\n")
        (extension / "ext.go").write_text(_EXTENSION_TYPES)
        lego = build.work / ".lego"
        _copy(module_dir(_LEGO, _LEGO_VERSION), lego)
        (lego / "providers/dns/zz_gen_dns_providers.go").write_text(_NO_PROVIDERS)
        replaced = f"-replace=github.com/abbot/go-http-auth={_AUTH}@{_AUTH_VERSION}"
        run_go(build, "mod", "edit", f"-replace={_LEGO}=./.lego", replaced)
        with (build.work / "go.sum").open("a") as sums:
            sums.write(_AUTH_SUMS)
        _build(build, "traefik")

    inputs = (TRAEFIK_VERSION, _AUTH_SUMS, _EXTENSION_TYPES, _NO_PROVIDERS, repr(build_arguments()))
    return Recipe("traefik", {"traefik": "bin/traefik"}, inputs, make, seconds=400)


def gateway_api_manifests() -> Path:
    """Upstream's folder of the CustomResourceDefinitions of the Gateway API."""
    return module_dir(GATEWAY_API, GATEWAY_API_VERSION) / "config/crd/standard"


def _copy(module: Path, target: Path) -> None:
    """Copy a module of the read-only cache, so that it can be changed."""
    shutil.copytree(module, target, dirs_exist_ok=True)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)


def _build(build: BuildContext, program: str) -> None:
    (build.out / "bin").mkdir()
    output = f"-o={build.out}/bin/{program}"
    run_go(build, *build_arguments(), f"-ldflags={' '.join(LINK)}", output, f"./cmd/{program}")
