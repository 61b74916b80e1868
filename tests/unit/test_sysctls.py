"""Which settings of the kernel are in force after a boot, by the files of a host.

What wins in each case was tried with systemd-sysctl 252 in a network namespace of its own.
"""

from __future__ import annotations

import pytest

from gpuboot.hosts import sysctls
from gpuboot.hosts.boot import ConfigLine

FORWARD = "net.ipv4.ip_forward"
OFF, ON = f"{FORWARD} = 0", f"{FORWARD}=1"
ALL = "net.ipv4.conf.all.forwarding"


def lines(*texts: tuple[str, str]) -> list[ConfigLine]:
    """Assignments. + texts: name of a file below sysctl.d, or its path, and the line"""
    return [
        ConfigLine(name if name.startswith("/") else f"/etc/sysctl.d/{name}", number, text)
        for number, (name, text) in enumerate(texts, 1)
    ]


def test_nothing_contradicts() -> None:
    assert sysctls.expected([]) == sysctls.EXPECTED
    for texts in ([], [("10-a.conf", ON)], [("10-a.conf", "net.ipv6.conf.all.forwarding=0")]):
        assert list(sysctls.overriding(lines(*texts))) == []
        assert list(sysctls.overridden(lines(*texts))) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("99-sysctl.conf", OFF),  # /etc/sysctl.conf, by the link of Debian 12, Ubuntu and RHEL
        ("60-cis.conf", "-net/ipv4/ip_forward = 0"),
        ("/usr/lib/sysctl.d/50-default.conf", OFF),
        ("60-cis.conf", f"{ALL} = 0"),  # the kernel has one variable for both
        ("50-bridge.conf", "net.bridge.bridge-nf-call-iptables = 0"),
        ("99-sysctl.conf", "fs.inotify.max_user_instances=128"),
    ],
)
def test_ours_is_read_after_it_and_it_is_told(name: str, text: str) -> None:
    assert list(sysctls.overriding(lines((name, text)))) == []
    [(_, line)] = sysctls.overridden(lines((name, text)))
    assert line.text == text
    assert line.place.endswith(f"{name}:1")


@pytest.mark.parametrize(
    ("texts", "key"),
    [
        ([("zz-hardening.conf", OFF)], FORWARD),
        ([("999-last.conf", "-net/ipv4/ip_forward=0")], FORWARD),
        ([("zz.conf", f"{ALL}=0")], FORWARD),
        ([("zz.conf", "net.ipv4.conf.*.forwarding = 0")], FORWARD),
        # a key that gets the value that it has keeps its place: ours is no later than 10-k8s.conf
        ([("10-k8s.conf", ON), ("60-cis.conf", f"{ALL}=0")], FORWARD),
        ([("/etc/ufw/sysctl.conf", "net/ipv4/ip_forward=0")], FORWARD),
        ([("zz.conf", "net.bridge.bridge-nf-call-ip6tables=0")],
         "net.bridge.bridge-nf-call-ip6tables"),
        ([("zz.conf", "fs.inotify.max_user_watches = 8192")], "fs.inotify.max_user_watches"),
    ],
)  # fmt: skip
def test_it_wins_over_ours(texts: list[tuple[str, str]], key: str) -> None:
    [(name, line)] = sysctls.overriding(lines(*texts))
    assert (name, line.text) == (key, texts[-1][1])
    assert key not in dict(sysctls.overridden(lines(*texts)))


@pytest.mark.parametrize(
    "texts",
    [
        [("zz.conf", OFF), ("zzz.conf", ON)],  # put right by a later one
        [("zz.conf", "net.ipv4.ip_f*=0")],  # a glob gives way to a key, whatever the order
        [("zz.conf", "-net.ipv4.conf.*.forwarding")],  # no value: out of globs, sets nothing
        [("zz.conf", "net.ipv4.conf.eth0.forwarding=0")],
    ],
)
def test_it_does_not_win(texts: list[tuple[str, str]]) -> None:
    assert list(sysctls.overriding(lines(*texts))) == []


def test_our_own_file_and_the_one_of_before_are_no_others() -> None:
    former = lines(("90-gpuboot.conf", OFF), ("99-zz-gpuboot.conf", OFF))
    assert list(sysctls.overriding(former)) == list(sysctls.overridden(former)) == []


def test_a_larger_value_of_somebody_stays() -> None:
    for name in ("60-databases.conf", "zz.conf"):
        texts = lines((name, "fs.inotify.max_user_watches = 1048576"))
        assert sysctls.expected(texts)["fs.inotify.max_user_watches"] == "1048576"
        assert list(sysctls.overriding(texts)) == list(sysctls.overridden(texts)) == []


@pytest.mark.parametrize(
    ("value", "is_sufficient"),
    [("1", True), ("2", True), ("0", False), ("", False), (None, False), ("yes", False)],
)
def test_enough(value: str | None, is_sufficient: bool) -> None:
    assert sysctls.is_enough(value, "1") is is_sufficient
