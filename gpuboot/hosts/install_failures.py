"""Why a package manager failed: its own words, and what helps.

The texts are those of apt 2.4 to 3.0 (apt-pkg/deb, apt-pkg/acquire-item.cc, apt-private), which
checks signatures by gpgv or, in Debian 13, by sqv; dpkg 1.21 to 1.22 (src/, lib/dpkg); and dnf 4
with rpm. In the language of programs: what runs them sets LC_ALL=C.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class InstallFailure:
    """A cause and its remedy. + version: it helps to see which versions there are"""

    cause: str
    remedy: str
    version: bool = False


_HOST = (
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
    # dpkg prints "paste subprocess was killed by signal (Broken pipe)" behind it
    (
        r"trying to overwrite .*which is also in package",
        InstallFailure(
            "two packages bring the same file",
            "the line above names the other package: remove it once nothing needs it, then run "
            "again",
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
)
_SOURCES = (
    (
        r"conflicting values set for option",
        InstallFailure(
            "two entries of apt's sources name one repository and differ in its key, so apt reads "
            "no source at all",
            "`grep -rn ADDRESS /etc/apt/sources.list /etc/apt/sources.list.d` there, with the "
            "address above, shows both; comment one out, then run again",
        ),
    ),
    (
        r"malformed (entry|line|stanza)|the list of sources could not be read",
        InstallFailure(
            "apt cannot read a file of its sources, so it reads none of them",
            "correct the file and the line that are named above, then run again",
        ),
    ),
    (
        r"expkeysig|primary key is not live|certificate is not live",
        InstallFailure(
            "the key that signs a repository has expired",
            "gpuboot fetches its own repositories' keys again as soon as their publishers have "
            "extended them: run again then. For any other repository install its publisher's "
            "present key, or comment its entry out",
        ),
    ),
    (
        r"sha1 is not considered secure",
        InstallFailure(
            "the key that signs a repository rests on SHA-1, which this system refuses",
            "its publisher or the mirror has to sign with a newer key",
        ),
    ),
    (
        r"no_pubkey|missing key \w+, which is needed",
        InstallFailure(
            "a repository is signed by a key that apt does not have for it",
            "where the key above is its publisher's, the file that Signed-By names is missing or "
            "closed to apt's user _apt (`chmod 0644`, its folders `chmod 0755`); a mirror that "
            "signs by itself needs key_sha256 in mirrors.apt",
        ),
    ),
    (
        r"unknown error executing apt-key|not readable by user '_apt'|couldn't be accessed by user",
        InstallFailure(
            "apt's own user, _apt, cannot read a key or a folder above it",
            "`chmod 0644` the file that Signed-By names and `chmod 0755` its folders, then run "
            "again",
        ),
    ),
    (
        r"is not valid yet",
        InstallFailure(
            "a repository's index is of a time that the host's clock has not reached",
            "compare `date` there with the true time and correct the clock (`timedatectl set-ntp "
            "true`), then run again",
        ),
    ),
    (
        r"release file for \S+ is expired",
        InstallFailure(
            "a repository's index is older than its publisher stands by",
            "synchronise the mirror that serves it; where there is none, compare `date` on the "
            "host with the true time",
        ),
    ),
    (
        r"clearsigned file isn't valid",
        InstallFailure(
            "something between the host and a repository answers in its place",
            "`curl -v` of the address above on the host shows what: a proxy, or a network that "
            "asks for a login",
        ),
    ),
    (
        r"(does not have|no longer has) a release file",
        InstallFailure(
            "there is no repository at the address of a source",
            "open the address above: correct it, or the mirror that lacks the repository; an entry "
            "that is not gpuboot's can be commented out",
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
_PACKAGES = (
    (
        r"version '\S+' for '\S+' was not found|unable to find a match|no match for argument",
        InstallFailure(
            "the repositories have no such version",
            "ask for a version that exists, or correct the repository; it offers what is above",
            version=True,
        ),
    ),
    (
        r"unable to locate package",
        InstallFailure(
            "no repository of the host has a package of that name",
            "correct the repository that should have it; `apt-get update` there tells whether apt "
            "can read it",
            version=True,
        ),
    ),
    (
        r"has no installation candidate",
        InstallFailure(
            "apt may install no version of a package",
            "`apt-cache policy NAME` there shows why: no repository has it, or a pin in "
            "/etc/apt/preferences.d forbids it, which has to go",
            version=True,
        ),
    ),
    (
        r"depends: .* but \S+ is to be installed|held packages were changed",
        InstallFailure(
            "a package is held, or pinned, at another version than the one that is needed",
            "`apt-mark showhold` and `apt-cache policy NAME` there show the hold or the pin "
            "(/etc/apt/preferences.d, often another vendor's); take it away, or ask for versions "
            "that go together",
        ),
    ),
    (
        r"depends: .* but it is not installable",
        InstallFailure(
            "a package that is needed can be had from no repository",
            "`apt-cache policy NAME` there shows whether a repository lacks it or a pin in "
            "/etc/apt/preferences.d forbids it",
        ),
    ),
    (
        r"unmet dependencies|unable to satisfy dependencies|held broken packages"
        r"|dependency problems|conflicting requests|can't find an archive for it",
        InstallFailure(
            "packages do not go together, or what they need is missing",
            "the lines above name them; correct the versions, or the repository that lacks one, "
            "then run again",
        ),
    ),
)
# in this order: what comes first explains what comes later in the same output
_FAILURES = (*_HOST, *_SOURCES, *_PACKAGES)
_PATTERNS = [(re.compile(text, re.IGNORECASE), failure) for text, failure in _FAILURES]


def explain(output: str) -> InstallFailure | None:
    """What a package manager's output says of its failure; None where it is in no words we know."""
    return next((failure for pattern, failure in _PATTERNS if pattern.search(output)), None)
