"""Settings of `gpuboot mirror`: what a mirror for a site without internet is filled with."""

from typing import Annotated, Literal

from pydantic import Field

from gpuboot.config.settings.base import Form, Model, Url
from gpuboot.config.settings.cluster import Mirrors

_PACKAGE = Form(r"[a-z0-9][a-z0-9.+-]+", "a package's name", "linux-headers-6.8.0-60-generic")
_IMAGE = Form(
    r"[a-z0-9.-]+\.[a-z0-9-]+(:\d+)?/[a-z0-9._/-]+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?",
    "an image with its registry and tag",
    "nvcr.io/nvidia/pytorch:25.10-py3",
)
_SUITE = Form(r"[a-z]+(-[a-z]+)?", "a suite of the distribution", "noble-updates")


class Archive(Model):
    """A repository of the distribution's own packages, as apt's sources have it."""

    url: Url = Field(description="Address above `dists/`, as after `URIs:`.")
    suites: tuple[Annotated[str, _SUITE], ...] = Field(
        description="e.g. `noble` and `noble-updates`; each is read for the platform of its name."
    )
    components: tuple[str, ...] = Field(("main",), description="e.g. `main` and `universe`.")
    keyring: str | None = Field(
        None,
        description="Public key that signs it, a file on the machine that fills the mirror. "
        "Default: `/usr/share/keyrings/debian-archive-keyring.gpg`, or Ubuntu's.",
    )


PlatformName = Literal["ubuntu22.04", "ubuntu24.04", "ubuntu26.04", "debian12", "debian13"]


class Mirror(Model):
    """What `gpuboot mirror` fills, and from where (docs/mirror.md); no run reads it."""

    platforms: tuple[PlatformName, ...] = Field(
        ("ubuntu24.04",), min_length=1, description="What the hosts run."
    )
    architectures: tuple[Literal["amd64", "arm64"], ...] = Field(
        ("amd64",), min_length=1, description="Of the hosts; as Debian calls them."
    )
    signing_key: str | None = Field(
        None,
        description="The site's secret key, a file on the machine that fills the mirror: what "
        "`gpg --export-secret-keys` writes, without passphrase, readable by its owner alone. It "
        "signs the apt repositories.",
    )
    archives: tuple[Archive, ...] = Field(
        (),
        description="Where the distribution's own packages come from. Without any the mirror has "
        "none of them, and the hosts need a mirror of their distribution from elsewhere.",
    )
    installed: dict[PlatformName, str] = Field(
        {},
        description="Platform -> `/var/lib/dpkg/status` of a host as it is before gpuboot, a file "
        "on the machine that fills the mirror: what hosts have is left out. Without it all that "
        "the packages need is there, down to the C library.",
    )
    packages: tuple[Annotated[str, _PACKAGE], ...] = Field(
        (), description="More packages, e.g. headers of the kernel that the hosts run."
    )
    images: tuple[Annotated[str, _IMAGE], ...] = Field(
        (), description="More images, e.g. of the site's own work."
    )
    sources: Mirrors = Field(
        Mirrors(),
        description="Where it is filled from, in the layout of `mirrors`; the default is each "
        "publisher. Files that it names are on the machine that fills the mirror.",
    )
