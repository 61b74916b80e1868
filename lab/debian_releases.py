"""The Debian releases that a lab's machines can run, and what publishers name after them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DebianRelease:
    """A Debian release.

    + version, codename: "12", "bookworm"
    + cuda_key: file name of the key of its folder in NVIDIA's CUDA repository
    """

    version: str
    codename: str
    cuda_key: str

    @property
    def cuda(self) -> str:
        """The release's folder in NVIDIA's CUDA repository."""
        return f"debian{self.version}"

    @property
    def docker_revision(self) -> str:
        """What Docker puts behind the versions of its packages for this release."""
        return f"1~debian.{self.version}~{self.codename}"


BOOKWORM = DebianRelease("12", "bookworm", "3bf863cc.pub")
DEBIAN_RELEASES = {
    release.version: release
    for release in (BOOKWORM, DebianRelease("13", "trixie", "8793F200.pub"))
}
