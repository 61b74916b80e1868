"""What the operations of packages need of a package manager: the commands, no decisions."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pyinfra.api.command import StringCommand


class PackageManagerCommands(Protocol):
    """A module such as `deploys.parts.packages.apt`.

    + READ_INDICES: reads the indices of all repositories
    """

    READ_INDICES: str

    def read_indices(self, file: str, names: Sequence[str]) -> str:
        """Read the indices of the repositories that a file describes, and of no others.

        + names: the repositories' names in `settings.mirrors.apt`
        """

    def install(self, versions: Mapping[str, str]) -> StringCommand:
        """Install packages at these versions."""

    def download(self, versions: Mapping[str, str]) -> str:
        """Shell commands that fail where `install` would, and download what it needs."""

    def words(self, versions: Mapping[str, str]) -> list[str]:
        """Packages with their versions, as the program takes them."""

    def list_versions(self, names: Sequence[str]) -> StringCommand:
        """Print which versions of packages the indices have."""

    def finish(self, interrupted: Mapping[str, str]) -> StringCommand | None:
        """Finish what an earlier installation left half done; None where there is no such state.

        + interrupted: packages whose files are half there, with their versions ("" where not known)
        """

    def fetch(self, versions: Mapping[str, str]) -> str | None:
        """Shell commands that download packages while others may be installed; None: none can.

        What has been downloaded, `install` takes instead of downloading it again.
        """

    def hold(self, names: Sequence[str]) -> StringCommand:
        """Keep installed packages as they are."""

    def release(self, names: Sequence[str]) -> StringCommand | None:
        """Let held packages change; None where `install` does so by itself."""
