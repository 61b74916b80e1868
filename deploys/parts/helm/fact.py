"""Helm itself, and what it has deployed."""

import shlex
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from gzip import decompress
from typing import Any

from deploys.engine.framed import Framed, OneLine
from deploys.parts.cluster import api_scripts as api
from gpuboot.cluster.helm_releases import Release, parse_released, parse_releases, release_path
from gpuboot.cluster.managed_objects import Key
from gpuboot.hosts.fact_output import Fields


class HelmVersion(OneLine):
    """Version of the Helm binary at a path, with its v; "" for none."""

    def command(self, path: str) -> str:
        binary = shlex.quote(path)
        return f"! test -x {binary} || {binary} version --template '{{{{.Version}}}}'"


class HelmReleases(Framed[dict[str, Release]]):
    """Releases by the path of their Secrets, by one command on the leader."""

    of_cluster = True
    default = dict
    parse = parse_releases

    def command(self, kubeconfig: str, paths: Iterable[str]) -> str:
        """`paths`: as `gpuboot.cluster.helm_releases.release_path` has them."""
        asking = api.command("helm/fact.sh", kubeconfig, paths)
        return api.where_there_is_one(kubeconfig, f"names=\n{asking}")


class ReleasedObjects(Framed[dict[str, tuple[Key, ...] | None]]):
    """What releases consist of, by the path of their Secrets; None where there is no release.

    Nothing but names leaves the host. On the leader.
    """

    of_cluster = True
    default = dict
    parse = parse_released

    def command(self, kubeconfig: str, paths: Iterable[str]) -> str:
        """`paths`: as `gpuboot.cluster.helm_releases.release_path` has them."""
        asking = api.command("helm/fact.sh", kubeconfig, paths)
        return api.where_there_is_one(kubeconfig, f"names=yes\n{asking}")


class HelmRelease(Framed[Release]):
    """A release: chart, version, status and values, by one command on the leader.

    Values may hold secrets: they are compared, never shown.
    """

    of_cluster = True

    def command(self, release: str, namespace: str, kubeconfig: str) -> str:
        paths = [release_path(release, namespace)]
        return HelmReleases().bare_command({"kubeconfig": kubeconfig, "paths": paths})

    @staticmethod
    def default() -> Release:
        return Release()

    def process(self, output: list[str]) -> Release:
        return next(iter(parse_releases(output).values()))

    @classmethod
    def merged(
        cls, arguments: Sequence[Mapping[str, Any]]
    ) -> tuple[type[Framed[Any]], dict[str, Any]] | None:
        return HelmReleases, {
            "kubeconfig": arguments[0]["kubeconfig"],
            "paths": [release_path(item["release"], item["namespace"]) for item in arguments],
        }

    @classmethod
    def part(cls, combined: dict[str, Release], arguments: Mapping[str, Any]) -> Release:
        return combined.get(
            release_path(arguments["release"], arguments["namespace"]), cls.default()
        )


class FileDigest(OneLine):
    """SHA-256 of a file; "" when there is none."""

    def command(self, path: str) -> str:
        return f"! test -e {shlex.quote(path)} || sha256sum {shlex.quote(path)} | cut -c 1-64"


@dataclass(frozen=True)
class Manifests:
    """What a release has deployed and what it would deploy, as YAML; Secrets are left out.

    + error: why that cannot be rendered; "" when it can, or when the chart is not on the host
    """

    old: str = ""
    new: str = ""
    error: str = ""


# drops the documents of a YAML stream that are Secrets
_NO_SECRETS = (
    'awk \'function flush() { if (text != "" && !secret) printf "%s", text; '
    'text = ""; secret = 0 } /^---/ { flush() } /^kind: *"?Secret"?/ { secret = 1 } '
    '{ text = text $0 "\\n" } END { flush() }\''
)


class HelmManifests(Framed[Manifests]):
    """A release's manifest and the one that other values would make of it. Values by `_stdin`,
    as `HiddenInput`.

    One that cannot be rendered is "": it is shown, not relied on.
    """

    of_plan = True

    default = Manifests

    def command(self, helm: str, release: str, namespace: str, archive: str) -> str:
        """`helm`: the command with its kubeconfig; `archive`: path of the chart."""
        name, space = shlex.quote(release), shlex.quote(namespace)
        pack = f"{_NO_SECRETS} | gzip -c | base64 -w 0"
        return (
            f"if test -f {shlex.quote(archive)}; then said=$(mktemp); "
            f'echo "old $({helm} get manifest {name} -n {space} 2>/dev/null | {pack})"; '
            f'echo "new $({helm} template {name} {shlex.quote(archive)} -n {space} --is-upgrade '
            f'--no-hooks --dry-run=server --values - 2>"$said" | {pack})"; '
            'echo "error $(tr "\\n" " " <"$said" | cut -c 1-400 | base64 -w 0)"; rm -f "$said"; fi'
        )

    def process(self, output: list[str]) -> Manifests:
        values = Fields(output, separator=" ", last=None)
        error = b64decode(values.first("error")).decode(errors="replace").strip()
        error = error[max(error.find("Error: "), 0) :]  # warnings come before it
        old, new = (decompress(b64decode(values.first(key))).decode() for key in ("old", "new"))
        return Manifests(old, new, "" if new else error)
