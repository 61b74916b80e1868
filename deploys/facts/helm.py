"""Helm itself, and what it has deployed."""

from __future__ import annotations

import shlex
from importlib import resources

from typing_extensions import override

from deploys.facts.framed import Framed
from deploys.facts.text import OneLine
from gpuboot.kubernetes.helm import Release, parse_release

SCRIPT = resources.files("deploys.facts").joinpath("helm.sh").read_text()


class HelmVersion(OneLine):
    """Version of the Helm binary at a path, with its v; "" for none."""

    @override
    def command(self, path: str) -> str:
        binary = shlex.quote(path)
        return f"! test -x {binary} || {binary} version --template '{{{{.Version}}}}'"


class HelmRelease(Framed[Release]):
    """One release: chart, version, status and values, by one command on the leader.

    Values may hold secrets: they are compared, never shown.
    """

    of_cluster = True

    @override
    def command(self, release: str, namespace: str, kubeconfig: str) -> str:
        variables = {"KUBECONFIG": kubeconfig, "release": release, "namespace": namespace}
        lines = [f"{key}={shlex.quote(value)}" for key, value in variables.items()]
        return "\n".join([*lines, SCRIPT])

    @staticmethod
    @override
    def default() -> Release:
        return Release()

    @override
    def process(self, output: list[str]) -> Release:
        return parse_release(output)


class FileDigest(OneLine):
    """SHA-256 of a file; "" when there is none."""

    @override
    def command(self, path: str) -> str:
        return f"! test -e {shlex.quote(path)} || sha256sum {shlex.quote(path)} | cut -c 1-64"
