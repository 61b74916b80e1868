"""Where everything lies in a mirror's folder, and the settings of a site that point there.

Below the folder's address hosts ask for what they would ask publishers for, so each path is that of
the publisher below a folder of its own.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.config.settings import Settings, parse_settings
from gpuboot.hosts import repositories
from gpuboot.hosts.platforms import Platform

HELM = "helm"
CHARTS = "charts"
REGISTRIES = "v2"
# repository -> the folder that takes the place of its publisher's address
APT: Mapping[str, str] = {
    "docker": "apt/docker/linux",
    "kubernetes": "apt/kubernetes",
    "cuda": "apt/cuda",
    "toolkit": "apt/libnvidia-container",
}
DISTRIBUTION_KEY = "key.asc"
_ROOT = "https://mirror.invalid"  # only to ask for paths below it


@dataclass(frozen=True)
class AptFolder:
    """An apt repository of a mirror.

    + name: `docker` and the like, or the distribution's id
    + path: its folder; key_path: its public key
    + suite, component: "" for a flat repository
    """

    name: str
    path: str
    key_path: str
    suite: str = ""
    component: str = ""

    @property
    def release(self) -> str:
        """The folder of `Release`."""
        return f"{self.path}/dists/{self.suite}" if self.suite else self.path

    def index(self, architecture: str) -> str:
        """The `Packages` of an architecture, below `release`."""
        return f"{self.component}/binary-{architecture}/Packages" if self.suite else "Packages"


def apt_folder(name: str, platform: Platform, machine: str, minor: str) -> AptFolder:
    """The folder of a publisher's repository. + as for `gpuboot.hosts.repositories.repository`"""
    repository = repositories.repository(name, platform, machine, minor, _everywhere())
    suite = platform.codename if name == "docker" else ""
    return AptFolder(
        name,
        _below(repository.url),
        _below(repository.key_url),
        suite,
        "stable" if suite else "",
    )


def distribution_folder(platform: Platform) -> AptFolder:
    """The folder of the distribution's own packages."""
    path = f"apt/{platform.id}"
    key = f"{path}/{DISTRIBUTION_KEY}"
    return AptFolder(platform.id, path, key, platform.codename, "main")


def _everywhere() -> Settings:
    return parse_settings(
        {"mirrors": {"apt": {name: {"url": f"{_ROOT}/{path}"} for name, path in APT.items()}}}
    )


def _below(url: str) -> str:
    return url.removeprefix(f"{_ROOT}/").rstrip("/")


def charts(repository: str) -> str:
    """The folder of a chart repository."""
    return f"{CHARTS}/{repository}"


def manifest(registry: str, repository: str, reference: str) -> str:
    """A manifest by its tag or digest, as the OCI distribution specification has it."""
    return f"{REGISTRIES}/{registry}/{repository}/manifests/{reference}"


def blob(registry: str, repository: str, digest: str) -> str:
    """A layer or a configuration of an image."""
    return f"{REGISTRIES}/{registry}/{repository}/blobs/{digest}"


def chart_index(archives: Mapping[str, bytes]) -> dict[str, Any]:
    """The index.yaml of a chart repository. + archives: file name -> content, `CHART-VERSION.tgz`

    Raises ValueError for a name that is none.
    """
    entries: dict[str, list[dict[str, Any]]] = {}
    for name, content in sorted(archives.items()):
        chart, version = _chart(name)
        entries.setdefault(chart, []).append(
            {
                "apiVersion": "v2",
                "name": chart,
                "version": version,
                "digest": hashlib.sha256(content).hexdigest(),
                "urls": [name],
                "created": "2026-01-01T00:00:00Z",
            }
        )
    return {"apiVersion": "v1", "entries": entries, "generated": "2026-01-01T00:00:00Z"}


def _chart(name: str) -> tuple[str, str]:
    """Chart and version of an archive: a version begins with a digit, or v and a digit."""
    words = name.removesuffix(".tgz").split("-")
    for position in range(1, len(words)):
        if words[position].lstrip("v")[:1].isdigit():
            return "-".join(words[:position]), "-".join(words[position:])
    raise ValueError(f"{name} is no archive of a chart")


def site_settings(url: str, key_sha256: str, paths: Iterable[str]) -> dict[str, Any]:
    """`settings.mirrors` of a site whose hosts reach a mirror at `url`.

    + key_sha256: of the public key file that signs its apt repositories
    + paths: of the mirror's files
    """
    path_list = list(paths)

    def has(folder: str) -> bool:
        return any(path.startswith(f"{folder}/") for path in path_list)

    def inside(folder: str) -> list[str]:
        return sorted({path.split("/")[1] for path in path_list if path.startswith(f"{folder}/")})

    return {
        "apt": {
            name: {"url": f"{url}/{path}", "key_sha256": key_sha256}
            for name, path in APT.items()
            if has(path)
        },
        "images": {name: f"{url}/{REGISTRIES}/{name}" for name in inside(REGISTRIES)},
        "charts": {name: f"{url}/{charts(name)}" for name in inside(CHARTS)},
        **({"helm": f"{url}/{HELM}"} if has(HELM) else {}),
    }
