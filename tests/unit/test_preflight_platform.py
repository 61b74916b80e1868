"""Preflight of systems with dnf: what the site settles first, and that nobody has run them yet."""

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.settings import parse_settings
from gpuboot.hosts import kernels, platforms
from gpuboot.hosts.node_state import Unit, parse
from gpuboot.preflight import platform as platform_checks
from gpuboot.preflight.docker_problems import checks as docker_checks
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_preflight import CLEAN, LEADER, WORKER

KERNEL = "5.14.0-570.el9.x86_64"
ROCKY = replace(
    CLEAN,
    os_id="rocky",
    os_version="9.6",
    os_name="Rocky Linux 9.6 (Blue Onyx)",
    kernel=KERNEL,
    dkms_package="available",
)
FIREWALLD = {"firewalld": Unit("active", "enabled")}
PROXY = {"proxy": {"https": "http://proxy.example:3128"}}


def causes(
    settings: dict[str, Any] | None = None, docker: bool = False, **changes: Any
) -> list[str]:
    parsed = parse_settings(settings or {})
    states = {WORKER.host: replace(ROCKY, **changes)}
    checks = docker_checks(parsed) if docker else None
    problems = evaluate([WORKER], states, parsed, versions.lock(parsed), checks)
    assert all(problem.remedy for problem in problems)
    return [problem.cause for problem in problems]


def test_a_clean_rocky_9_passes() -> None:
    assert causes() == causes(docker=True) == []


@pytest.mark.parametrize(
    ("changes", "settings", "part"),
    [
        ({"selinux_enforcing": True}, {}, "SELinux is enforcing"),
        ({}, PROXY, "dnf does not know the proxy"),
        ({"dkms_package": "missing"}, {}, "no repository of dnf has DKMS"),
        ({"headers": "missing"}, {}, f"running kernel {KERNEL}, and dnf has none"),
        ({"packages": {"runc": "1.2.5-2.el9"}}, {}, "the distribution's package runc"),
        ({"os_version": "8.10", "os_name": "Rocky Linux 8.10"}, {}, "runs Rocky Linux 8.10"),
    ],
)
def test_what_the_site_settles_first(
    changes: dict[str, Any], settings: dict[str, Any], part: str
) -> None:
    [cause] = causes(settings, **changes)
    assert part in cause


def test_what_does_not_matter_is_not_told() -> None:
    assert causes(PROXY, dnf_proxy=True) == []
    assert causes({"driver": {"enabled": False}}, dkms_package="missing", driver_loaded="1") == []
    assert causes(docker=True, units=FIREWALLD) == [], "Docker opens its own ports in firewalld"
    assert causes(units=FIREWALLD) == [], "its rules are judged, not that it runs"


def test_ubuntu_is_not_asked_for_it() -> None:
    state = replace(CLEAN, selinux_enforcing=True, units=FIREWALLD, dkms_package="missing")
    parsed = parse_settings(PROXY)
    assert evaluate([WORKER], {WORKER.host: state}, parsed, versions.lock(parsed)) == []


def test_experimental_systems_are_told_once_for_all_their_hosts() -> None:
    rhel = replace(ROCKY, os_id="rhel")
    states = {WORKER.host: ROCKY, LEADER.host: ROCKY}
    [line] = platform_checks.warnings([LEADER, WORKER], states)
    assert line.startswith("cp1, gpu1: Rocky Linux 9 is experimental: nobody has run gpuboot on it")
    assert "remedy" in line
    assert len(platform_checks.warnings([LEADER, WORKER], {**states, LEADER.host: rhel})) == 2
    assert platform_checks.warnings([WORKER], {WORKER.host: CLEAN}) == []
    assert platform_checks.warnings([WORKER], {}) == []


@pytest.mark.parametrize(
    ("kernel", "arch", "packages", "expected"),
    [
        (KERNEL, "x86_64", {}, [f"kernel-devel-{KERNEL}", f"kernel-devel-matched-{KERNEL}"]),
        # it came with a newer kernel, which has not booted yet
        (
            KERNEL,
            "x86_64",
            {"kernel-devel-matched": "5.14.0-611.el9"},
            [f"kernel-devel-{KERNEL}", "kernel-devel-matched"],
        ),
        (
            "5.14.0-570.el9.aarch64+64k",
            "aarch64",
            {},
            [
                "kernel-64k-devel-5.14.0-570.el9.aarch64",
                "kernel-64k-devel-matched-5.14.0-570.el9.aarch64",
            ],
        ),
    ],
)
def test_kernel_headers(
    kernel: str, arch: str, packages: dict[str, str], expected: list[str]
) -> None:
    state = replace(ROCKY, kernel=kernel, arch=arch, packages=packages)
    assert kernels.headers(platforms.of(state), state) == expected


def test_what_the_fact_tells_of_such_a_system() -> None:
    lines = ["selinux\tenforcing", "dnf_proxy\t1", "dkms_package\tmissing"]
    lines += ["package_lock\tdnf (pid 7)", "unit\tfirewalld active enabled", "uid\t0", "clock\t1"]
    state = parse(lines)
    assert (state.selinux_enforcing, state.dnf_proxy, state.dkms_package) == (True, True, "missing")
    assert state.package_lock_holders == ("dnf (pid 7)",)
    assert state.is_active("firewalld")
