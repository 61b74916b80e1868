"""Which versions the repositories of a host serve now."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources

from typing_extensions import override

from deploys.facts.framed import Framed
from gpuboot.hosts.fact_output import Fields

SCRIPT = resources.files("deploys.facts").joinpath("served.sh").read_text()


@dataclass(frozen=True)
class Served:
    """What repositories answered.

    + packages, charts: name -> versions
    + silent: repositories and charts that did not answer
    """

    packages: Mapping[str, list[str]] = field(default_factory=dict)
    charts: Mapping[str, list[str]] = field(default_factory=dict)
    silent: tuple[str, ...] = ()


class ServedVersions(Framed[Served]):
    """The versions of packages and charts, asked of the configured repositories over the network.

    What the download of charts needs of the environment comes by `_stdin`, as `HiddenInput`.
    """

    default = Served

    @override
    def command(
        self,
        packages: Iterable[str],
        minor: str,
        charts: Mapping[str, str],
        sources: str = "/etc/apt/sources.list.d",
        helm: str = "/usr/local/bin/helm",
    ) -> str:
        """`minor`: the Kubernetes minor after the locked one; `charts`: name -> repository's URL"""
        values = {
            "sources": sources,
            "helm": helm,
            "packages": " ".join(packages),
            "next": minor,
            "charts": "\n".join(f"{name} {url}" for name, url in charts.items()),
        }
        head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
        return head + SCRIPT

    @override
    def process(self, output: list[str]) -> Served:
        values = Fields(output, separator=" ", last="asked")
        packages: dict[str, list[str]] = {}
        for name, version in values.words("package", 2):
            packages.setdefault(name, []).append(version)
        charts = {
            name: [
                entry["version"]
                for entry in json.loads(chart_json)
                if entry["name"] == f"{name}/{name}"
            ]
            for name, chart_json in values.words("chart", 2)
        }
        return Served(packages, charts, tuple(values.all("silent")))
