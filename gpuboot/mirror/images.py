"""Images as registries have them: references, manifests, and which of their files are mirrored.

An index of several architectures stays as its publisher made it, so that its digest stays: the
manifests of architectures that nobody asked for are named in it and not there, and nobody asks.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# the types of OCI, and Docker's for the same (OCI image specification, "Compatibility matrix")
ACCEPT = ", ".join(
    [
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    ]
)
HUB = "docker.io"
_HUB_ADDRESS = "registry-1.docker.io"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REFERENCE = re.compile(
    r"(?P<registry>[A-Za-z0-9.-]+\.[A-Za-z0-9-]+(:\d+)?)/(?P<repository>[a-z0-9._/-]+?)"
    r"(:(?P<tag>[\w.-]+))?(@(?P<digest>sha256:[0-9a-f]{64}))?"
)
# what stands in a manifest of Kubernetes: alone, or behind an option's =
_IMAGE_IN_TEXT = re.compile(rf"(?:^|=)({_REFERENCE.pattern})$")
# without a registry an image is Docker Hub's
_OF_HUB = re.compile(
    r"([a-z0-9_-]+/)?[a-z0-9._-]+(:[\w.-]+(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})"
)
# operands of virtual machines and their switch (gpu-operator, ClusterPolicy)
_OF_SANDBOX = (
    "vgpuManager", "vgpuDeviceManager", "sandboxDevicePlugin", "vfioManager", "kataManager",
    "kataSandboxDevicePlugin", "ccManager",
)  # fmt: skip


class BadImageError(ValueError):
    """A reference or a manifest that is none. + remedy: what a person can do"""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}\n    remedy: {remedy}")
        self.cause, self.remedy = cause, remedy


@dataclass(frozen=True)
class Reference:
    """+ registry: as `docker.io`; tag, digest: one of them or both"""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def manifest_name(self) -> str:
        """What the registry is asked for: the digest where there is one."""
        return self.digest or self.tag

    def __str__(self) -> str:
        tag, digest = f":{self.tag}" if self.tag else "", f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"


def reference(text: str) -> Reference:
    """Raises `BadImageError` for one without registry, or without tag and digest."""
    match = _REFERENCE.fullmatch(text)
    if match is None or not (match["tag"] or match["digest"]):
        cause = f"{text} is no image with registry and tag"
        raise BadImageError(cause, "write it as nvcr.io/nvidia/pytorch:25.10-py3")
    return Reference(
        match["registry"], match["repository"], match["tag"] or "", match["digest"] or ""
    )


def base_url(registry: str, mirrors: Mapping[str, str]) -> str:
    """Where a registry's repositories are asked for. + mirrors: as `settings.mirrors.images`"""
    mirror = mirrors.get(registry) or mirrors.get("*")
    return mirror or f"https://{_HUB_ADDRESS if registry == HUB else registry}/v2"


@dataclass(frozen=True)
class Descriptor:
    """A file of an image. + digest: `sha256:…`"""

    digest: str
    size: int


@dataclass(frozen=True)
class Parsed:
    """A manifest. + manifests: of the architectures asked for; blobs: what an image is made of

    + missing_architectures: architectures asked for that it does not have
    """

    manifests: tuple[Descriptor, ...] = ()
    blobs: tuple[Descriptor, ...] = ()
    missing_architectures: tuple[str, ...] = ()


def parse(image: str, content: bytes, architectures: Iterable[str]) -> Parsed:
    """What a manifest, or an index of manifests, points to. Raises `BadImageError`."""
    try:
        tree = json.loads(content)
        if "manifests" in tree:
            return _index(tree, architectures)
        if "layers" not in tree:
            raise KeyError("layers")
        # layers with addresses of their own are fetched from there, by whoever pulls (Windows)
        local_layers = [entry for entry in tree["layers"] if not entry.get("urls")]
        return Parsed(blobs=tuple(_descriptor(entry) for entry in [tree["config"], *local_layers]))
    except (ValueError, KeyError, TypeError) as error:
        raise BadImageError(
            f"{image}: the registry's answer is no manifest that containerd pulls ({error!r})",
            "look at the image's tag; images of schema 1 have to be pushed anew",
        ) from None


def _index(tree: Mapping[str, Any], architectures: Iterable[str]) -> Parsed:
    manifests, missing_architectures = [], []
    for architecture in architectures:
        entries = [
            _descriptor(entry)
            for entry in tree["manifests"]
            if _runs_on(entry.get("platform") or {}, architecture)
        ]
        manifests += entries
        if not entries:
            missing_architectures.append(architecture)
    return Parsed(
        manifests=tuple(dict.fromkeys(manifests)),
        missing_architectures=tuple(missing_architectures),
    )


def _runs_on(platform: Mapping[str, str], architecture: str) -> bool:
    return platform.get("os") == "linux" and platform.get("architecture") == architecture


def _descriptor(entry: Mapping[str, Any]) -> Descriptor:
    digest, size = entry["digest"], entry["size"]
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"digest {digest!r}")
    return Descriptor(digest, int(size))


def of_objects(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """Images that objects of Kubernetes name, sorted: in `image`, in options, by their parts.

    + objects: as `helm template` makes them

    What is `enabled: false` is left out, with all in it.
    """
    return sorted({image for document in objects for image in _images(document)})


def _images(tree: Any) -> Iterator[str]:
    if isinstance(tree, Mapping):
        if tree.get("enabled") is False:
            return
        if composed := _composed(tree):
            yield composed
        for key, value in _wanted_parts(tree):
            if key == "image" and isinstance(value, str) and _OF_HUB.fullmatch(value):
                yield f"{HUB}/{'' if '/' in value else 'library/'}{value}"
            elif not (key == "image" and composed):
                yield from _images(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _images(value)
    elif isinstance(tree, str):
        match = _IMAGE_IN_TEXT.search(tree)
        if match and (match["tag"] or match["digest"]):
            yield match[1]


def _wanted_parts(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    sandbox = tree.get("sandboxWorkloads")
    off = isinstance(sandbox, Mapping) and not sandbox.get("enabled")
    for key, value in tree.items():
        if not (off and key in _OF_SANDBOX):
            yield key, value


def _composed(tree: Mapping[str, Any]) -> str:
    """An image by repository, image and version, as gpu-operator's ClusterPolicy has it."""
    parts = [tree.get(key) for key in ("repository", "image", "version")]
    if not all(isinstance(part, str) and part for part in parts):
        return ""
    repository, image, version = (str(part) for part in parts)
    return f"{repository}/{image}{'@' if version.startswith('sha256:') else ':'}{version}"
