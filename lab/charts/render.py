"""Render an assembled chart with Helm, for checks that need no cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from lab.state import cache_dir

Object = dict[str, Any]


class HelmError(RuntimeError):
    """Helm refused the chart or its values; the text is Helm's."""


def helm_binary() -> Path | None:
    """Helm to use: GPUBOOT_HELM, else the mirror's, one beside Python, one on PATH; or None."""
    if helm_path := os.environ.get("GPUBOOT_HELM"):
        return Path(helm_path)
    built = sorted((cache_dir() / "store").glob("helm-*/**/helm"), key=lambda p: p.stat().st_mtime)
    sibling = Path(sys.executable).parent / "helm"
    on_path = shutil.which("helm")
    candidates = [*reversed(built), sibling, *([Path(on_path)] if on_path else [])]
    return next((p for p in candidates if p.is_file() and os.access(p, os.X_OK)), None)


def render(
    chart: Path,
    release: str,
    namespace: str,
    values: Mapping[str, Any] | None = None,
    api_versions: Iterable[str] = (),
) -> list[Object]:
    """The objects (hooks included, CRDs not) that `helm template` makes.

    `api_versions` are added to what the templates believe the cluster serves. Raises HelmError
    if Helm fails, FileNotFoundError if there is no Helm.
    """
    command = [str(_helm()), "template", release, str(chart), "--namespace", namespace]
    command += ["--values", "-", *(arg for api in api_versions for arg in ("--api-versions", api))]
    result = subprocess.run(
        command, input=json.dumps(values or {}), capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise HelmError(result.stderr.strip())
    return [doc for doc in yaml.load_all(result.stdout, Loader=yaml.CSafeLoader) if doc]


def lint(chart: Path, values: Mapping[str, Any] | None = None) -> str:
    """Helm's own check of the chart; its output. Raises HelmError on findings that are errors."""
    result = subprocess.run(
        [str(_helm()), "lint", str(chart), "--values", "-"],
        input=json.dumps(values or {}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode != 0:
        raise HelmError(result.stdout + result.stderr)
    return result.stdout


def find(objects: Iterable[Object], kind: str, name: str) -> Object:
    """The one object of that kind and name. Raises LookupError if there is none or several."""
    matches = [o for o in objects if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    if len(matches) != 1:
        raise LookupError(f"{len(matches)} objects {kind}/{name}")
    return matches[0]


def names(objects: Iterable[Object], kind: str) -> set[str]:
    """Names of all objects of a kind."""
    return {o["metadata"]["name"] for o in objects if o["kind"] == kind}


def _helm() -> Path:
    helm = helm_binary()
    if helm is None:
        raise FileNotFoundError("no helm: set GPUBOOT_HELM or build the mirror")
    return helm
