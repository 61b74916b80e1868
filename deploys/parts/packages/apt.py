"""The commands by which `deploys.parts.packages.operations` works with apt."""

import shlex
from collections.abc import Iterable, Mapping, Sequence

from pyinfra.api.command import QuoteString, StringCommand

from deploys.engine.framed import script
from gpuboot.hosts.driver_packages import pinning_package

# defines the shell function lay_pins
LAY_PINS = script("packages/apt_pins.sh")
_PINNED = "/run/gpuboot/pinned"
_PREFERENCES = f"-o Dir::Etc::preferencesparts={_PINNED}/preferences"
LOCK_TIMEOUT_S = 600
# what it prints is matched: gpuboot.hosts.failures, gpuboot.hosts.transient
_ENVIRONMENT = "LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l NEEDRESTART_SUSPEND=1"
_LOCK = f"-o DPkg::Lock::Timeout={LOCK_TIMEOUT_S}"
_INSTALL_ARGUMENTS = (
    "install -y -q --no-install-recommends --allow-downgrades --allow-change-held-packages"
)
_INSTALL = (
    f"{_ENVIRONMENT} apt-get {_LOCK} -o Dpkg::Options::=--force-confdef "
    f"-o Dpkg::Options::=--force-confold {_INSTALL_ARGUMENTS}"
)
# what dpkg cannot configure because something that it needs was not unpacked yet, apt brings
_FINISH = (
    f"{_ENVIRONMENT} dpkg --force-confdef --force-confold --configure -a; "
    f"{_INSTALL} --fix-broken --no-remove"
)
_FETCH = """\
eval "$(apt-config shell archives Dir::Cache::archives/d)"
mkdir -p /var/cache/gpuboot/packages && cd /var/cache/gpuboot/packages || exit
for word in WORDS; do
  file=$(apt-get download -q --print-uris "$word" | cut -d ' ' -f 2)
  if [ -n "$file" ] && ! [ -e "$archives/$file" ]; then
    apt-get -o APT::Sandbox::User=root download -q "$word" && mv "$file" "$archives/$file"
  fi
done"""
# an index that cannot be read may be one that nobody needs here
READ_INDICES = f"LC_ALL=C apt-get {_LOCK} update -q -o APT::Update::Error-Mode=any"


def read_indices(file: str, names: Sequence[str]) -> str:
    """Read the indices of the repositories that a file describes, and of no others."""
    del names  # the file's own sources are all there are
    return (
        f"LC_ALL=C apt-get {_LOCK} update -q -o Dir::Etc::sourcelist={file} "
        "-o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any"
    )


def install(versions: Mapping[str, str]) -> StringCommand:
    """Install packages at these versions, whether they are held or not.

    What pins the driver's version holds for those that are installed together with it.
    """
    pinning = pins(versions)
    if pinning and len(versions) > len(pinning):
        return StringCommand(_pinned(pinning, f"{_INSTALL} {_PREFERENCES} {_join(versions)}"))
    return StringCommand(_INSTALL, *map(QuoteString, words(versions)))


def simulate(versions: Mapping[str, str], options: str) -> str:
    """The shell command that prints what `install` would do, after `finish`, and does nothing.

    + options: of apt-get, e.g. for a private copy of the sources
    """
    return f"apt-get {options} -s {_INSTALL_ARGUMENTS} --fix-broken {_join(versions)}"


def download(versions: Mapping[str, str]) -> str:
    """The shell commands that simulate `install`, and download what it needs.

    What pins the driver's version holds as it will when it is installed before the driver.
    """
    return _pinned(
        pins(versions),
        f'said=$({simulate(versions, _PREFERENCES)} 2>&1) || {{ echo "$said"; exit 100; }}',
        f"{_INSTALL} {_PREFERENCES} --download-only {_join(versions)}",
    )


def _pinned(pinning: Iterable[str], *lines: str) -> str:
    """Shell commands with `_PREFERENCES` as if packages that pin versions were installed."""
    begin = f"(umask 022; export LC_ALL=C; options=; trap 'rm -rf {_PINNED}' EXIT"
    laid = " ".join(["lay_pins", _PINNED, *map(shlex.quote, pinning)])
    return "\n".join([begin, f"{LAY_PINS}{laid} || exit", *lines]) + ")"


def pins(versions: Iterable[str]) -> list[str]:
    """The packages that pin the driver's version (`driver_packages.pinning_package`)."""
    return [name for name in versions if name.startswith(pinning_package(""))]


def finish(interrupted: Mapping[str, str]) -> StringCommand:
    """Finish what an earlier run of dpkg, whoever's, left half done; nothing is removed for it.

    + interrupted: packages that were killed while they were unpacked, with their versions: apt
      takes those for installed as long as nobody names them
    """
    reinstall_arguments = (
        ["--reinstall", *map(QuoteString, words(interrupted))] if interrupted else []
    )
    return StringCommand(_FINISH, *reinstall_arguments)


def list_versions(names: Sequence[str]) -> StringCommand:
    """Print which versions of packages the indices have."""
    return StringCommand("LC_ALL=C apt-cache madison", *map(QuoteString, names))


def words(versions: Mapping[str, str]) -> list[str]:
    """Packages with their versions, as apt takes them."""
    return [f"{name}={version}" if version else name for name, version in versions.items()]


def _join(versions: Mapping[str, str]) -> str:
    return shlex.join(words(versions))


def fetch(versions: Mapping[str, str]) -> str:
    """Shell commands that download packages into apt's cache, see `PackageManagerCommands`.

    `apt-get download` takes no lock and resolves nothing, so it may run beside an installation. apt
    has checked what it keeps; a file is in the cache as a whole or not at all.
    """
    return _FETCH.replace("WORDS", _join(versions))


def release(names: Sequence[str]) -> None:
    """Do nothing: apt-get has an option for that, see `install`."""


def hold(names: Sequence[str]) -> StringCommand:
    """Keep installed packages as they are. Another version takes the hold away."""
    return StringCommand("apt-mark hold", *[QuoteString(name) for name in names])
