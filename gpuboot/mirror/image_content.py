"""The images of a mirror: what kubeadm and the settings name, read from their registries."""

import hashlib
import platform
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from debian.arfile import ArError
from debian.debfile import DebError, DebFile

from gpuboot.config.problems import Problem
from gpuboot.hosts.platforms import ARCHITECTURES
from gpuboot.mirror import images, mirror_layout
from gpuboot.mirror.apt_content import sources
from gpuboot.mirror.client import Client, FetchError
from gpuboot.mirror.content import Item, Progress, make_item
from gpuboot.mirror.images import Reference
from gpuboot.mirror.manifest import File
from gpuboot.mirror.mirror_requirements import Site

_KUBEADM = "./usr/bin/kubeadm"


@dataclass(frozen=True)
class ImageContent:
    """+ items: manifests and blobs; references: the images, as hosts name them"""

    references: tuple[str, ...]
    items: tuple[Item, ...]
    problems: tuple[Problem, ...]


def own_architecture() -> str:
    """Debian's name for the architecture of this machine; "" for one that gpuboot does not know."""
    return ARCHITECTURES.get(platform.machine(), ("", ""))[0]


def kubeadm_images(package: Path, folder: Path, version: str) -> list[str]:
    """What kubeadm of a Debian package says that it needs.

    + folder: where the program may be unpacked; version: of Kubernetes, without v

    Raises `FetchError`.
    """
    target = folder / "kubeadm"
    try:
        # members are read as they are asked for: the program is some 70 MB
        with DebFile(str(package)) as opened:
            content = opened.data.get_content(_KUBEADM)
        assert isinstance(content, bytes)
        target.write_bytes(content)
        target.chmod(0o755)
        command = [str(target), "config", "images", "list", "--kubernetes-version", f"v{version}"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except (ArError, DebError, OSError) as error:
        raise FetchError(f"{package.name}: {error}", _RUN_HERE) from None
    if result.returncode != 0:
        raise FetchError(f"kubeadm config images list: {result.stderr.strip()}", _RUN_HERE)
    return result.stdout.split()


_RUN_HERE = (
    "fill the mirror on a Linux machine of one of mirror.architectures: kubeadm says which images "
    "it needs, and is run for it"
)


def contents(client: Client, site: Site, names: Sequence[str], progress: Progress) -> ImageContent:
    """All files of these images. Raises `FetchError`."""
    items: list[Item] = []
    problems: list[Problem] = []
    for position, name in enumerate(names, 1):
        progress(f"images: reading {name} ({position} of {len(names)})")
        try:
            reader = _Reader(client, site, images.reference(name))
            items += reader.read()
        except images.BadImageError as error:
            problems.append(Problem("", error.cause, error.remedy))
            continue
        problems += reader.problems()
    return ImageContent(tuple(names), tuple(items), tuple(problems))


class _Reader:
    """Reads one image from its registry."""

    def __init__(self, client: Client, site: Site, image: Reference) -> None:
        self._client, self._image = client, image
        self._architectures = site.settings.mirror.architectures
        base = images.base_url(image.registry, sources(site.settings).mirrors.images)
        self._url = f"{base}/{image.repository}"
        self._part = f"images {image.registry}"
        self._missing_architectures: tuple[str, ...] = ()

    def read(self) -> Iterator[Item]:
        image = self._image
        content = self._manifest(image.manifest_name)
        digest = _digest(content)
        if image.digest and digest != image.digest:
            raise _altered(f"{self._url}/manifests/{image.digest}", digest)
        for name in (image.tag, digest):
            if name:
                yield self._manifest_item(name, content, digest)
        parsed = images.parse(str(image), content, self._architectures)
        self._missing_architectures = parsed.missing_architectures
        yield from self._blobs(parsed.blobs)
        for descriptor in parsed.manifests:
            inner = self._manifest(descriptor.digest)
            if _digest(inner) != descriptor.digest:
                raise _altered(f"{self._url}/manifests/{descriptor.digest}", _digest(inner))
            yield self._manifest_item(descriptor.digest, inner, descriptor.digest)
            inner_manifest = images.parse(str(image), inner, self._architectures)
            yield from self._blobs(inner_manifest.blobs)

    def problems(self) -> Iterator[Problem]:
        for architecture in self._missing_architectures:
            yield Problem(
                "",
                f"{self._image} has nothing for {architecture}",
                "name another image in the settings, or take the architecture out of "
                "mirror.architectures",
            )

    def _manifest(self, name: str) -> bytes:
        return self._client.text(f"{self._url}/manifests/{name}", {"Accept": images.ACCEPT})

    def _manifest_item(self, name: str, content: bytes, digest: str) -> Item:
        path = mirror_layout.manifest(self._image.registry, self._image.repository, name)
        return make_item(path, content, self._part, f"{self._url}/manifests/{digest}")

    def _blobs(self, blobs: Iterable[images.Descriptor]) -> Iterator[Item]:
        for blob in blobs:
            path = mirror_layout.blob(self._image.registry, self._image.repository, blob.digest)
            url = f"{self._url}/blobs/{blob.digest}"
            sha256 = blob.digest.removeprefix("sha256:")
            yield Item(File(path, sha256, blob.size, url, self._part))


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _altered(url: str, digest: str) -> FetchError:
    return FetchError(
        f"{url} is not what its digest says: {digest}",
        "run it again; if it stays, ask who runs that registry",
    )
