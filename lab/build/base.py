"""The root file system every machine starts from, and the Debian packages its mirror offers.

The base resembles a minimal cloud server: Debian, systemd, OpenSSH and little else. It has no
apt sources of its own; a machine gets the mirror as its only one.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from lab.build.progress import Progress
from lab.build.store import digest, stored
from lab.debian_releases import DebianRelease
from lab.host import NSPAWN_DIR, run, write_atomically
from lab.state import LabError, cache_dir

ARCHIVE_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
USERS = ("admin", "nosudo")  # admin may use sudo without a password, nosudo may not at all

# What the base holds beyond debootstrap's minbase. Left out on purpose, so that the product has
# to install them: pciutils, conntrack, socat, ethtool, iptables, chrony.
INCLUDE = (
    "systemd,systemd-sysv,dbus,libpam-systemd,openssh-server,iproute2,iputils-ping,sudo,kmod,"
    "procps,udev,gnupg,ca-certificates,curl,less,cron"
)

# What the mirror offers (with everything these depend on).
MIRRORED = tuple(
    """
    apparmor apt-utils bash-completion bsdextrautils chrony conntrack curl dkms ebtables ethtool
    gnupg gpg haproxy ipset iptables ipvsadm jq keepalived kmod libseccomp2 lsb-release lsof mokutil
    mount nfs-common nftables nvme-cli openssl parted pciutils psmisc python3-minimal python3-venv
    rclone rsync socat strace tar tcpdump unattended-upgrades util-linux xz-utils zstd
    """.split()  # noqa: SIM905 - a list of forty quoted names is no better
)


def base_root(release: DebianRelease, progress: Progress) -> Path:
    """The base root file system in the store; debootstrap makes it the first time (1-3 min)."""
    recipe = (Path(__file__).read_bytes(), *(f.read_bytes() for f in sorted(NSPAWN_DIR.iterdir())))
    key = digest(release.codename, INCLUDE, *recipe)
    return stored(f"base-{key}", lambda part: _bootstrap(release, part / "root", progress)) / "root"


def _bootstrap(release: DebianRelease, root: Path, progress: Progress) -> None:
    debootstrapped = stored(
        f"debootstrap-{digest(release.codename, INCLUDE)}",
        lambda part: _debootstrap(release.codename, part / "root", progress),
    )
    run(["cp", "-a", "--reflink=auto", str(debootstrapped / "root"), str(root)])
    _customise(root)


def _debootstrap(codename: str, root: Path, progress: Progress) -> None:
    started = time.monotonic()
    progress(f"base system: debootstrap {codename} (1-3 minutes)")
    # What it mounts in the target goes with its mount namespace, even when it is killed.
    command = ["unshare", "--mount", "--propagation", "private", "debootstrap"]
    command += ["--variant=minbase", f"--include={INCLUDE}", f"--keyring={ARCHIVE_KEYRING}"]
    run([*command, codename, str(root), debian_mirrors()[0]], log=cache_dir() / "debootstrap.log")
    for name in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(root / name)
        (root / name / "partial").mkdir(parents=True)
    progress(f"base system: made in {time.monotonic() - started:.0f} s")


def _customise(root: Path) -> None:
    leftovers = [
        root / name for name in ("etc/apt/sources.list", "etc/hostname", "etc/resolv.conf")
    ]
    for path in [*leftovers, *(root / "etc/ssh").glob("ssh_host_*")]:
        path.unlink(missing_ok=True)
    (root / "etc/machine-id").write_text("")
    for user in USERS:
        run(["chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", user])
    sudoers = root / "etc/sudoers.d/admin"
    sudoers.write_text("admin ALL=(ALL) NOPASSWD: ALL\n")
    sudoers.chmod(0o440)
    system_conf = root / "etc/systemd/system.conf.d/10-lab.conf"
    system_conf.parent.mkdir(parents=True, exist_ok=True)
    # container scopes ignore TERM: without this each reboot of a machine with pods takes 90 s
    system_conf.write_text("[Manager]\nDefaultTimeoutStopSec=10s\n")
    units = ["systemd-networkd.service", "ssh.service"]
    for unit in NSPAWN_DIR.glob("*.service"):
        shutil.copyfile(unit, root / "etc/systemd/system" / unit.name)
        units.append(unit.name)
    run(["systemctl", f"--root={root}", "enable", *units])


def debian_mirrors() -> list[str]:
    """URIs of the Debian archive: $GPUBOOT_DEBIAN_MIRROR, then the host's own apt sources.

    Raises `LabError` when there is none, as on an Ubuntu host.
    """
    urls = [url for url in [os.environ.get("GPUBOOT_DEBIAN_MIRROR")] if url]
    sources = Path("/etc/apt")
    files = [sources / "sources.list", *sorted((sources / "sources.list.d").glob("*"))]
    for path in (file for file in files if file.is_file()):
        urls += re.findall(r"(https?://\S+/debian)/?(?=\s|$)", path.read_text())
    if not urls:
        raise LabError(
            "this host's apt sources name no Debian archive: set GPUBOOT_DEBIAN_MIRROR to the URL "
            "of one, ending in /debian"
        )
    return urls


def archives() -> tuple[str, str]:
    """URIs of the Debian archive that the lab uses, and of its security updates."""
    archive = debian_mirrors()[0]
    return archive, archive.removesuffix("/debian") + "/debian-security"


def mirrored_debs(
    release: DebianRelease, base: Path, names: Iterable[str], progress: Progress
) -> list[Path]:
    """Archives of the Debian packages `names` and of all they need beyond what `base` has."""
    packages = sorted(set(names))
    status = (base / "var/lib/dpkg/status").read_bytes()
    key = digest(release.codename, " ".join(packages), status)
    folder = stored(
        f"debian-{key}", lambda part: _download(release, part, base, packages, progress)
    )
    return sorted(folder.glob("*.deb"))


def _download(
    release: DebianRelease, part: Path, base: Path, names: list[str], progress: Progress
) -> None:
    progress(f"Debian packages for the mirror: {len(names)} and what they need")
    apt = part / "apt"
    options = apt_options(release, apt, base / "var/lib/dpkg/status")
    # Every package on its own: two of them may conflict, and each must be installable.
    for name in names:
        command = ["apt-get", *options, "install", "--download-only", "--yes", name]
        run([*command[:-1], "--no-install-recommends", name], log=part / "log")
    for deb in (apt / "archives").glob("*.deb"):
        # apt writes the colon of an epoch as %3a
        deb.rename(part / re.sub(r"_\d+%3a", "_", deb.name))
    shutil.rmtree(apt)
    progress(f"Debian packages for the mirror: {len(list(part.glob('*.deb')))} archives")


def apt_options(release: DebianRelease, folder: Path, status: Path) -> list[str]:
    """apt options for resolving against `status` in `folder`, with the host's way to the net."""
    for name in ("lists/partial", "archives/partial", "etc", "parts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    if not status.exists():
        status.write_text("")
    archive, security = archives()
    signed = f"[signed-by={ARCHIVE_KEYRING}]"
    name = release.codename
    lines = [f"deb {signed} {archive} {name} main", f"deb {signed} {archive} {name}-updates main"]
    lines.append(f"deb {signed} {security} {name}-security main")
    write_atomically(folder / "sources.list", ("\n".join(lines) + "\n").encode())
    settings = {
        "Dir::State::status": status,
        "Dir::State::lists": folder / "lists",
        "Dir::State::extended_states": folder / "extended_states",
        "Dir::Cache::archives": folder / "archives",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": folder / "parts",
        "Dir::Etc::preferences": folder / "preferences",
        "Dir::Etc::preferencesparts": folder / "parts",
        "APT::Architecture": "amd64",
        "APT::Architectures": "amd64",
        "APT::Sandbox::User": "root",
        "APT::Update::Post-Invoke-Success": "",
        "Debug::NoLocking": "true",
    }
    options = [f"-o{key}={value}" for key, value in settings.items()]
    run(["apt-get", *options, "-q", "update"], log=folder / "log")
    return options
