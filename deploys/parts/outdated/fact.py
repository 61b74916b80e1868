"""Versions that the repositories of a host serve now."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from deploys.engine.framed import Framed, script
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.packages.fact import KEYS
from gpuboot.hosts import repository_keys
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.repository_keys import RepositoryKey


@dataclass(frozen=True)
class Served:
    """What repositories answered, and what the host and its cluster have.

    + packages, charts: name -> versions
    + installed, releases, images: name and version of packages, of charts that Helm installed
      and of images that run in the cluster
    + keys: of the host's repositories
    + silent: repositories and charts that did not answer
    """

    packages: Mapping[str, list[str]] = field(default_factory=dict)
    charts: Mapping[str, list[str]] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    installed: tuple[tuple[str, str], ...] = ()
    releases: tuple[tuple[str, str], ...] = ()
    images: tuple[tuple[str, str], ...] = ()
    keys: tuple[RepositoryKey, ...] = ()


class ServedVersions(Framed[Served]):
    """The versions of packages and charts, asked of the configured repositories over the network.

    What the download of charts needs of the environment comes by `_stdin`, as `HiddenInput`.
    """

    default = Served

    def command(
        self,
        packages: Iterable[str],
        minor: str,
        charts: Mapping[str, str],
        sources: str = "/etc/apt/sources.list.d",
        helm: str = "/usr/local/bin/helm",
        kubeconfig: str = ADMIN_CONF,
    ) -> str:
        """`minor`: the Kubernetes minor after the locked one; `charts`: name -> repository's URL"""
        return KEYS + script(
            "outdated/fact.sh",
            sources=sources,
            helm=helm,
            kubeconfig=kubeconfig,
            packages=" ".join(packages),
            next=minor,
            charts="\n".join(f"{name} {url}" for name, url in charts.items()),
        )

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
        return Served(
            packages,
            charts,
            tuple(values.all("silent")),
            installed=tuple((name, version) for name, version in values.words("installed", 2)),
            releases=tuple(_release(text) for text in values.all("release")),
            images=tuple(_image(reference) for reference in values.all("image")),
            keys=repository_keys.parse(values),
        )


def _release(chart: str) -> tuple[str, str]:
    """Name and version of a chart as Helm lists it: gpu-operator-v26.7.0."""
    match = re.fullmatch(r"(.+?)-(v?\d.*)", chart)
    return (match[1], match[2]) if match else (chart, "")


def _image(reference: str) -> tuple[str, str]:
    """Name and tag of an image, without its registry and digest."""
    name, _, tag = reference.partition("@")[0].rpartition("/")[2].partition(":")
    return name, tag
