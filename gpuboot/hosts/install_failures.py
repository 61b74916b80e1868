"""Why a package manager failed: its own words, and what helps.

The texts are those of apt 2.4 to 3.0 (apt-pkg/deb, apt-pkg/acquire-item.cc, apt-private), dpkg 1.21
to 1.22 (src/, lib/dpkg), and dnf 4 with rpm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class InstallFailure:
    """A cause and its remedy. + version: it helps to see which versions there are"""

    cause: str
    remedy: str
    version: bool = False


# in this order: what comes first explains what comes later in the same output
_FAILURES = (
    (
        r"no space left on device|you don't have enough free space in"
        r"|more space needed on the .* filesystem",
        InstallFailure(
            "a file system of the host is full",
            "`df -h / /var /boot` shows which; make room there, then run again",
        ),
    ),
    (
        r"read-only file system",
        InstallFailure(
            "a file system of the host is read-only",
            "`dmesg` tells why it was mounted so; mend that, then run again",
        ),
    ),
    (
        r"could not get lock|unable to acquire the dpkg frontend lock"
        r"|unable to lock|was locked by another process",
        InstallFailure(
            "another program uses the package manager",
            "let it end (unattended-upgrades may take minutes), then run again",
        ),
    ),
    (
        r"dpkg was interrupted"
        r"|sub-process \S+ (received (signal|a segmentation fault)|exited unexpectedly)"
        r"|subprocess was killed by signal",
        InstallFailure(
            "the installation was interrupted",
            "run again, which finishes it; if it ends so each time, `journalctl -k` tells of "
            "memory that ran out",
        ),
    ),
    (
        r"bad return status for module build on kernel",
        InstallFailure(
            "DKMS could not build a kernel module",
            "the lines above name its log (make.log), whose first `error:` says why: most often a "
            "kernel that is newer than the driver knows; mend that, then run again",
        ),
    ),
    (
        r"script subprocess (returned error exit status|failed)|scriptlet failed",
        InstallFailure(
            "a package's own installation script failed",
            "the lines above name package and reason; mend that, then run again",
        ),
    ),
    (
        r"version '\S+' for '\S+' was not found|unable to locate package"
        r"|has no installation candidate|unable to find a match|no match for argument",
        InstallFailure(
            "the repositories have no such version",
            "ask for a version that exists, or correct the repository; it offers what is above",
            version=True,
        ),
    ),
    (
        r"unmet dependencies|held broken packages|dependency problems|conflicting requests"
        r"|can't find an archive for it",
        InstallFailure(
            "packages do not go together, or what they need is missing",
            "the lines above name them; correct the versions, or the repository that lacks one, "
            "then run again",
        ),
    ),
    (
        r"hash sum mismatch|file has unexpected size|checksum doesn't match",
        InstallFailure(
            "the repository served a file that is not the one in its index",
            "a mirror that is being synchronised does so: run again later, or correct the mirror",
        ),
    ),
)
_PATTERNS = [(re.compile(text, re.IGNORECASE), failure) for text, failure in _FAILURES]


def explain(said: str) -> InstallFailure | None:
    """What a package manager's output says of its failure; None where it is in no words we know."""
    return next((failure for pattern, failure in _PATTERNS if pattern.search(said)), None)
