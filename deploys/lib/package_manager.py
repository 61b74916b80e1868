"""What `deploys.operations.packages` needs of a package manager: the commands, no decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pyinfra.api.command import QuoteString, StringCommand

from deploys.lib.commands import shell_message


class PackageManagerCommands(Protocol):
    """A module such as `deploys.lib.apt`.

    + REPOSITORY_FILES: shell patterns of files that may not configure a repository as well
    + READ_INDICES: reads the indices of all repositories
    """

    REPOSITORY_FILES: tuple[str, ...]
    READ_INDICES: str

    def read_index(self, file: str, name: str) -> str:
        """Read the index of the repository that a file describes, and of no other.

        + name: the repository's name in `settings.mirrors.apt`
        """

    def remove_repository(self, file: str, url: str) -> StringCommand:
        """Take a repository out of another file that configures it."""

    def install(self, versions: Mapping[str, str], available: Sequence[str]) -> StringCommand:
        """Install packages at these versions.

        + available: packages whose versions in the indices to show when this fails
        """

    def fetch(self, versions: Mapping[str, str]) -> str | None:
        """Shell commands that download packages while others may be installed; None: none can.

        What has been downloaded, `install` takes instead of downloading it again.
        """

    def hold(self, names: Sequence[str]) -> StringCommand:
        """Keep installed packages as they are."""

    def release(self, names: Sequence[str]) -> StringCommand | None:
        """Let held packages change; None where `install` does so by itself."""


def install_command(
    manager: str, install: str, words: Sequence[str], list_versions: str, available: Sequence[str]
) -> StringCommand:
    """Install packages; when that fails, tell what there is to choose from.

    + words: packages with their versions, as the program takes them
    + list_versions: the command that lists the versions of packages; + available: of which ones
    """
    quoted = [QuoteString(word) for word in words]
    if not available:
        return StringCommand(install, *quoted)
    message = shell_message(
        f"{manager} cannot install {' '.join(words)}",
        f"ask for a version that exists, or correct the repository; {manager} offers:",
    )
    names = [QuoteString(name) for name in available]
    return StringCommand(
        install, *quoted, "|| {", message, f"; {list_versions}", *names, ">&2; exit 1; }"
    )
