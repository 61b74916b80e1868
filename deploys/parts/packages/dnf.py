"""The commands by which `deploys.parts.packages.operations` works with dnf 4 (RHEL 9).

dnf waits by itself while another process holds its locks. Held packages are those of its
versionlock plugin: dnf-versionlock(8).
"""

import shlex
from collections.abc import Mapping, Sequence

from pyinfra.api.command import QuoteString, StringCommand

_DNF = "LC_ALL=C dnf -q -y --setopt=exit_on_lock=False"
_LIST_VERSIONS = "LC_ALL=C dnf -q repoquery --showduplicates --qf '%{name} %{evr} %{repoid}'"
_INSTALL = f"{_DNF} install --setopt=install_weak_deps=False"
# an index that cannot be read may be one that nobody needs here
READ_INDICES = f"{_DNF} makecache --refresh"


def read_indices(file: str, names: Sequence[str]) -> str:
    """Read the indices of the repositories that a file describes, and of no others."""
    enabled = " ".join(f"--enablerepo=gpuboot-{name}" for name in names)
    return (
        f"{_DNF} makecache --refresh --setopt=reposdir={file.rpartition('/')[0]} "
        f"--disablerepo='*' {enabled}"
    )


def install(versions: Mapping[str, str]) -> StringCommand:
    """Install packages at these versions, older ones as well; none of them may be held."""
    return StringCommand(_INSTALL, *map(QuoteString, words(versions)))


def download(versions: Mapping[str, str]) -> str:
    """Resolve what `install` needs and download it, as if locks and streams were changed before."""
    return (
        f"{_INSTALL} --downloadonly --disableplugin=versionlock "
        f"--setopt=gpuboot-cuda.module_hotfixes=1 {shlex.join(words(versions))}"
    )


def finish(interrupted: Mapping[str, str]) -> None:
    """Do nothing: rpm has no half-configured state, and the next transaction installs the rest."""


def list_versions(names: Sequence[str]) -> StringCommand:
    """Print which versions of packages the repositories have."""
    return StringCommand(_LIST_VERSIONS, *map(QuoteString, names))


def words(versions: Mapping[str, str]) -> list[str]:
    """Packages with their versions, as dnf takes them."""
    return [f"{name}-{version}" if version else name for name, version in versions.items()]


def fetch(versions: Mapping[str, str]) -> None:
    """Do nothing: dnf would hold its lock while it downloads, and keep installations waiting."""


def hold(names: Sequence[str]) -> StringCommand:
    """Keep installed packages as they are."""
    return StringCommand("dnf -q versionlock add", *[QuoteString(name) for name in names])


def release(names: Sequence[str]) -> StringCommand:
    """Let held packages change."""
    return StringCommand("dnf -q versionlock delete", *[QuoteString(name) for name in names])
