"""Container images written as files: a static tree that any web server can serve as a registry.

`<v2root>/<registry host>/<repository>/{manifests,blobs}/…` follows the OCI distribution
specification's paths. Layers are plain tar files: they go over a local bridge, where compressing
costs more than it saves. Times, owners and order are fixed, so equal inputs give equal digests.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import posixpath
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.build.libraries import Source, libraries
from lab.state import LabError

SYMLINK = "-> "
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_EPOCH = 1767225600  # 2026-01-01T00:00:00Z: one fixed time in every layer
_MERGED = ("bin", "sbin", "lib", "lib64")  # links into /usr, as on every current distribution
_PASSWD = "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"
_BASE: Mapping[str, Path | bytes | str] = {
    **{f"/{name}": f"{SYMLINK}usr/{name}" for name in _MERGED},
    "/etc/passwd": _PASSWD,
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "hosts: files dns\n",
    "/tmp/": "",
}


@dataclass(frozen=True)
class Image:
    """An image of one layer, described by value.

    `name` is what nodes pull: `<registry host>/<repository>:<tag>`. `files` maps an absolute path
    to a source file (`Path`), literal content, a symbolic link (`"-> target"`), or, where the path
    ends in "/", an empty folder. `libs`: add the C library and whatever else the programs are
    linked with. `origin` is one of the image's labels: where the content comes from, and whether
    it is a stand-in or simulated. `command`: arguments of the entrypoint, which a pod's take the
    place of. `modes`: those of paths that are not as usual.
    """

    name: str
    files: Mapping[str, Source]
    entrypoint: tuple[str, ...]
    origin: str
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    workdir: str = ""
    libs: bool = False
    command: tuple[str, ...] = ()
    modes: Mapping[str, int] = field(default_factory=dict)

    @property
    def registry(self) -> str:
        """The registry's host, as in `registry.k8s.io`."""
        return self.name.partition("/")[0]

    @property
    def repository(self) -> str:
        """The path in the registry, as in `coredns/coredns`."""
        return self.name.partition("/")[2].rpartition(":")[0]

    @property
    def tag(self) -> str:
        """The tag, as in `v1.14.2`."""
        return self.name.rpartition(":")[2]


@dataclass(frozen=True)
class Blob:
    """A blob that has been written: its file, digest (`sha256:…`) and size in bytes."""

    path: Path
    digest: str
    size: int

    def describe(self, media_type: str) -> dict[str, str | int]:
        """The OCI descriptor that points to it."""
        return {"mediaType": media_type, "digest": self.digest, "size": self.size}


Layers = dict[str, Blob]  # by content


def write_images(images: Iterable[Image], v2root: Path) -> dict[str, str]:
    """Write all `images` below `v2root`; image name -> manifest digest.

    A layer that several images have in common is written once and linked.
    """
    layers: Layers = {}
    return {image.name: write_image(image, v2root, layers) for image in images}


def write_image(
    image: Image,
    v2root: Path,
    layers: Layers | None = None,
) -> str:
    """Write one image below `v2root` and return its manifest's digest.

    `layers` are the layers written so far, by content; the image's own is added. Raises `LabError`
    when a source file is missing or its libraries cannot be found.
    """
    layers = {} if layers is None else layers
    folder = v2root / image.registry / image.repository
    blobs = folder / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    content = layer_content(image)
    content_key = repr((sorted(content.items()), sorted(image.modes.items())))
    if content_key in layers:
        layer = _link(layers[content_key], blobs)
    else:
        layer = layers[content_key] = _write_layer(content, image.modes, blobs)
    config = _write_json(config_of(image, layer.digest), blobs)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": config.describe(CONFIG_TYPE),
        "layers": [layer.describe(LAYER_TYPE)],
    }
    written_blob = _write_json(manifest, folder / "manifests")
    shutil.copyfile(written_blob.path, folder / "manifests" / image.tag)
    return written_blob.digest


def config_of(image: Image, diff_id: str) -> dict[str, object]:
    """The image's configuration (OCI image specification) for a layer with digest `diff_id`."""
    env = {"PATH": PATH, **image.env}
    run: dict[str, object] = {
        "Env": [f"{name}={value}" for name, value in env.items()],
        "Entrypoint": list(image.entrypoint),
        "WorkingDir": image.workdir or "/",
        "Labels": {
            "org.opencontainers.image.title": image.name,
            "org.opencontainers.image.description": f"gpuboot lab: {image.origin}",
        },
    }
    if image.user:
        run["User"] = image.user
    if image.command:
        run["Cmd"] = list(image.command)
    return {
        "created": "2026-01-01T00:00:00Z",
        "architecture": "amd64",
        "os": "linux",
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }


def layer_content(image: Image) -> dict[str, Source]:
    """All paths of the image's layer, with /bin, /sbin and /lib under /usr, and libraries."""
    files = {normal(path): source for path, source in (*_BASE.items(), *image.files.items())}
    if image.libs:
        files = {**libraries(files.values()), **files}
    return files


def normal(path: str) -> str:
    """`/bin/x` as `/usr/bin/x`: the first is a link to the second in all images here."""
    top, _, remainder = path.lstrip("/").partition("/")
    return f"/usr/{top}/{remainder}" if top in _MERGED and remainder else path


def _write_layer(content: Mapping[str, Source], modes: Mapping[str, int], blobs: Path) -> Blob:
    part = blobs / f".part-{os.getpid()}"
    with part.open("wb") as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        for path in sorted({*_folders(content), *content}):
            _add(archive, path, content.get(path, ""), modes.get(path))
    with part.open("rb") as layer_file:
        digest = f"sha256:{hashlib.file_digest(layer_file, 'sha256').hexdigest()}"
    size = part.stat().st_size
    part.rename(blobs / digest)
    return Blob(blobs / digest, digest, size)


def _folders(content: Mapping[str, Source]) -> set[str]:
    """The folders above all paths, each with "/" at its end."""
    folders: set[str] = set()
    for path in content:
        parent = posixpath.dirname(path.rstrip("/"))
        while parent != "/":
            folders.add(f"{parent}/")
            parent = posixpath.dirname(parent)
    return folders


def _add(archive: tarfile.TarFile, path: str, source: Source, mode: int | None) -> None:
    entry = tarfile.TarInfo(path.strip("/"))
    entry.mtime = _EPOCH
    if path.endswith("/"):
        usual = 0o1777 if path == "/tmp/" else 0o755
        entry.type, entry.mode = tarfile.DIRTYPE, usual if mode is None else mode
        archive.addfile(entry)
    elif isinstance(source, str) and source.startswith(SYMLINK):
        entry.type, entry.linkname = tarfile.SYMTYPE, source.removeprefix(SYMLINK)
        entry.mode = 0o777
        archive.addfile(entry)
    elif isinstance(source, Path):
        if not source.is_file():
            raise LabError(f"{source}, which is to be {path} in an image, is no file")
        with source.open("rb") as stream:
            entry.size = os.fstat(stream.fileno()).st_size
            usual = 0o755 if os.access(source, os.X_OK) or "/lib" in path else 0o644
            entry.mode = usual if mode is None else mode
            archive.addfile(entry, stream)
    else:
        data = source.encode() if isinstance(source, str) else source
        entry.size, entry.mode = len(data), 0o644
        archive.addfile(entry, io.BytesIO(data))


def _write_json(value: object, folder: Path) -> Blob:
    data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / digest).write_bytes(data)
    return Blob(folder / digest, digest, len(data))


def _link(blob: Blob, folder: Path) -> Blob:
    target = folder / blob.path.name
    if not target.exists():
        os.link(blob.path, target)
    return Blob(target, blob.digest, blob.size)
