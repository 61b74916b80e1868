"""Finding out what a mirror has to hold, and filling it: nothing that is right is fetched again."""

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from gpuboot.config import secret_files
from gpuboot.config.problems import Problem
from gpuboot.config.settings import SettingsError
from gpuboot.hosts import registries
from gpuboot.mirror import (
    apt_content,
    chart_content,
    image_content,
    manifest,
    signing,
)
from gpuboot.mirror import mirror_requirements as wanted
from gpuboot.mirror.apt_content import AptContent
from gpuboot.mirror.client import Client, FetchError, Login
from gpuboot.mirror.content import Item, Progress, is_right, link, put, unique, write
from gpuboot.mirror.manifest import Manifest, size_text
from gpuboot.mirror.mirror_requirements import Site

_RESERVE = 256 << 20  # bytes that stay free on the folder's disk
_PROGRAMS = ("apt-get", "apt-cache", "gpg", "gpg-connect-agent")
_PROGRAMS_REMEDY = "install the packages apt and gnupg, as every Debian and Ubuntu has them"


@dataclass(frozen=True)
class Plan:
    """What a mirror has to hold, but for what it makes itself at the end.

    + apt: for the indices; charts: their archives; images: by reference
    """

    apt: AptContent
    charts: tuple[Item, ...]
    images: tuple[str, ...]
    items: tuple[Item, ...]
    problems: tuple[Problem, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        return self.apt.notes


def client_for(site: Site) -> Client:
    """Raises `SettingsError` for a file with a registry's password that cannot be read.

    Raises `FetchError` where a program that a mirror takes is not installed.
    """
    if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
        raise FetchError(f"this machine has no {', '.join(missing)}", _PROGRAMS_REMEDY)
    passwords, problems = secret_files.read(registries.files(site.settings))
    if problems:
        raise SettingsError(problems)
    logins = {
        "registry-1.docker.io" if host == "docker.io" else host: Login(
            login.username, passwords[host]
        )
        for host, login in site.settings.registries.items()
    }
    return Client(site.settings.mirror.sources.ca_bundle, logins)


def plan(client: Client, site: Site, folder: Path, progress: Progress) -> Plan:
    """Ask publishers what there is. What has to be read for it is fetched into `folder`.

    Raises `FetchError`.
    """
    apt = apt_content.contents(client, site, progress)
    archives: dict[str, Item] = {}
    tarballs: list[Item] = []
    image_names = wanted.images(site)
    if not site.docker and not apt.problems:
        archives, tarballs = _helm_and_charts(client, site)
        with tempfile.TemporaryDirectory(prefix="gpuboot-mirror-") as tools:
            reading = _Reading(client, site, folder, Path(tools), progress)
            image_names += reading.of_kubeadm(apt.items)
            image_names += reading.of_charts(archives, tarballs)
    image_names = list(dict.fromkeys(image_names))
    images = image_content.contents(client, site, image_names, progress)
    items = unique([*apt.items, *tarballs, *archives.values(), *images.items])
    problems = (*apt.problems, *images.problems)
    return Plan(apt, tuple(archives.values()), tuple(image_names), tuple(items), problems)


def _helm_and_charts(client: Client, site: Site) -> tuple[dict[str, Item], list[Item]]:
    archives = {
        chart: chart_content.archive(client, site, chart)
        for chart in chart_content.chart_values(site)
    }
    tarballs = [
        item
        for architecture in site.settings.mirror.architectures
        for item in chart_content.helm(client, site, architecture)
    ]
    return archives, tarballs


class _Reading:
    """What kubeadm and Helm say that a site runs. + folder: for what is read; tools: for both"""

    def __init__(
        self, client: Client, site: Site, folder: Path, tools: Path, progress: Progress
    ) -> None:
        self._client, self._site, self._progress = client, site, progress
        self._folder, self._tools = folder, tools

    def of_kubeadm(self, items: Sequence[Item]) -> list[str]:
        architecture, version = image_content.own_architecture(), self._site.lock.kubernetes.version
        for item in items:
            name = item.file.path.rpartition("/")[2]
            if name.startswith(f"kubeadm_{version}-") and name.endswith(f"_{architecture}.deb"):
                return image_content.kubeadm_images(self._local_path(item), self._tools, version)
        raise FetchError(
            f"there is no kubeadm {version} for {architecture or 'this machine'}", _MACHINE_REMEDY
        )

    def of_charts(self, archives: dict[str, Item], tarballs: Sequence[Item]) -> list[str]:
        if not archives:
            return []
        ending = f"-linux-{image_content.own_architecture()}.tar.gz"
        for item in tarballs:
            if item.file.path.endswith(ending):
                program = chart_content.program(self._local_path(item), self._tools)
                paths = {chart: self._local_path(archive) for chart, archive in archives.items()}
                return chart_content.named_images(program, self._site, paths)
        raise FetchError("there is no Helm for this machine", _MACHINE_REMEDY)

    def _local_path(self, item: Item) -> Path:
        """Where a file is, which is fetched if it has to be."""
        self._progress(f"reading {item.file.path} ({size_text(item.file.size)})")
        put(self._client, self._folder, item)
        return self._folder / item.file.path


_MACHINE_REMEDY = "run this on a Linux machine of one of mirror.architectures"


def fill(client: Client, site: Site, folder: Path, progress: Progress) -> tuple[Plan, Manifest]:
    """Fill a folder. It may be interrupted at any time, and be run again.

    Raises `FetchError`, `SigningError`, and `SettingsError` for what hosts need and nobody has.
    """
    path = site.settings.mirror.signing_key
    if path is None:
        raise signing.SigningError(_NO_KEY)
    with signing.site_key(Path(path).expanduser()) as key:
        folder.mkdir(parents=True, exist_ok=True)
        mirror_plan = plan(client, site, folder, progress)
        if mirror_plan.problems:
            raise SettingsError(list(mirror_plan.problems))
        fetch(client, folder, mirror_plan.items, progress)
        public = hashlib.sha256(key.public()).hexdigest()
        indices = [
            *apt_content.indices(mirror_plan.apt.selections, key),
            *chart_content.indices(folder, list(mirror_plan.charts)),
        ]
        for item in indices:
            put(client, folder, item)
    mirror_manifest = _manifest(site, public, [*mirror_plan.items, *indices])
    write(folder / manifest.NAME, mirror_manifest.to_json().encode())
    return mirror_plan, mirror_manifest


_NO_KEY = (
    "mirror.signing_key names no key, and hosts install nothing that is not signed\n"
    "    remedy: make one: gpg --quick-generate-key 'mirror of SITE' rsa3072 sign never; then gpg "
    "--armor --export-secret-keys 'mirror of SITE' > mirror.key; chmod 600 mirror.key; and name "
    "that file"
)


def fetch(client: Client, folder: Path, items: Sequence[Item], progress: Progress) -> None:
    """Put all of these in a folder; what is right there is left alone. Raises `FetchError`."""
    progress(f"verifying what is in {folder} already")
    missing = [item for item in items if not is_right(folder, item.file)]
    missing_paths = {item.file.path for item in missing}
    groups = manifest.shared(item.file for item in items)
    size = sum(
        group[0].size for group in groups if all(file.path in missing_paths for file in group)
    )
    free = shutil.disk_usage(folder).free
    if size + _RESERVE > free:
        raise FetchError(
            f"{folder} needs {size_text(size)} more, and its disk has {size_text(free)} free",
            "name a folder on a larger disk, or free space on that one",
        )
    paths_by_digest = {
        item.file.sha256: item.file.path for item in items if item.file.path not in missing_paths
    }
    for position, item in enumerate(missing, 1):
        file = item.file
        if file.sha256 in paths_by_digest:
            link(folder / paths_by_digest[file.sha256], folder / file.path)
        else:
            if item.content is None:
                progress(f"{position} of {len(missing)}: {file.path} ({size_text(file.size)})")
            put(client, folder, item)
            paths_by_digest[file.sha256] = file.path


def _manifest(site: Site, key_sha256: str, items: Sequence[Item]) -> Manifest:
    settings = site.settings.mirror
    return Manifest(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        gpuboot=version("gpuboot"),
        platforms=settings.platforms,
        architectures=settings.architectures,
        key_sha256=key_sha256,
        versions=site.lock.model_dump(mode="json"),
        files=tuple(sorted(item.file for item in unique(items))),
    )
