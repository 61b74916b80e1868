"""Why an installation failed, in the words that apt, dpkg and dnf really print."""

import pytest

from gpuboot.hosts.failures import explain

KILLED = """\
Unpacking kubelet (1.36.3-1.1) ...
E: Sub-process /usr/bin/dpkg received signal 9.
"""
INTERRUPTED = "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct it."
LOCKED = (
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)"
)
FULL = """\
dpkg: error processing archive /var/cache/apt/archives/kubelet_1.36.3-1.1_amd64.deb (--unpack):
 cannot copy extracted data for './usr/bin/kubelet' to '/usr/bin/kubelet.dpkg-new': failed to \
write (No space left on device)
E: Sub-process /usr/bin/dpkg returned an error code (1)
"""
SCRIPT = """\
dpkg: error processing package nvidia-dkms (--configure):
 installed nvidia-dkms package post-installation script subprocess returned error exit status 10
E: Sub-process /usr/bin/dpkg returned an error code (1)
"""
UNMET = """\
The following packages have unmet dependencies:
 kubeadm : Depends: kubelet (>= 1.30) but it is not going to be installed
E: Unable to correct problems, you have held broken packages.
"""


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (KILLED, "interrupted"),
        (INTERRUPTED, "interrupted"),
        (LOCKED, "another program"),
        ("dpkg: error: dpkg frontend lock was locked by another process with pid 7", "another"),
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "full"),
        (FULL, "full"),
        (SCRIPT, "script failed"),
        (UNMET, "do not go together"),
        ("E: Version '9-*' for 'kubelet' was not found", "no such version"),
        ("E: Unable to locate package kubelet", "no repository of the host has a package"),
        ("No match for argument: kubelet-9\nError: Unable to find a match: kubelet-9", "no such"),
        ("E: Failed to fetch https://m/k.deb  Hash Sum mismatch", "not the one in its index"),
    ],
)
def test_the_cause(output: str, cause: str) -> None:
    explanation = explain(output)
    assert explanation is not None
    assert cause in explanation.cause
    assert explanation.version is cause.startswith(("no such", "no repository"))


def test_other_words_are_not_explained() -> None:
    assert explain("E: something new") is None
