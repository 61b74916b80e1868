"""Versions that no repository has are refused in preflight, as far as apt's indexes tell.

Lines of apt-cache madison as apt 2.6 prints them for pkgs.k8s.io, NVIDIA's CUDA repository and
download.docker.com on Debian 12.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.preflight import package_problems as checks
from gpuboot.preflight.package_problems import AvailableVersion
from tests.unit.test_preflight import CLEAN, WORKER

HOST = replace(CLEAN, os_id="debian", os_version="12", arch="x86_64")
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64"
OFFERS = [
    AvailableVersion("nvidia-open", "595.112.07-1", CUDA),
    AvailableVersion("nvidia-open", "590.44.01-1", CUDA),
    AvailableVersion("kubelet", "1.37.2-1.1", "https://pkgs.k8s.io/core:/stable:/v1.37/deb"),
    AvailableVersion("kubelet", "1.37.1-1.1", "https://pkgs.k8s.io/core:/stable:/v1.37/deb"),
    AvailableVersion(
        "containerd.io", "2.3.7-1~debian.12~bookworm", "https://download.docker.com/linux/debian"
    ),
]


def evaluate(
    settings: dict[str, Any],
    offers: list[AvailableVersion] | None = None,
    state: Any = HOST,
    node: Node = WORKER,
) -> tuple[list[str], list[str]]:
    parsed = parse_settings(settings)
    required = {node.host: checks.required(node, state, parsed, versions.lock(parsed))}
    available = {node.host: OFFERS if offers is None else offers}
    problems, warnings = checks.missing_versions(required, available)
    return [str(problem) for problem in problems], warnings


def test_the_lock_s_own_versions_are_there() -> None:
    assert evaluate({}) == ([], [])


def test_a_driver_that_the_repository_lacks() -> None:
    [problem], warnings = evaluate({"driver": {"version": "590.99.99"}})
    assert (
        "[gpu1] its repository has no nvidia-open 590.99.99 (it has 595.112.07, 590.44" in problem
    )
    assert "driver.version" in problem
    assert not warnings


def test_a_kubernetes_that_the_repository_lacks() -> None:
    [problem], _ = evaluate({"versions": {"kubernetes": {"version": "1.37.0"}}})
    assert "its repository has no kubelet 1.37.0 (it has 1.37.2, 1.37.1)" in problem


def test_what_is_newer_than_the_index_may_be_there_by_now() -> None:
    problems, [warning] = evaluate({"driver": {"version": "600.10.01"}})
    assert not problems
    assert "by the package index there its repository has no nvidia-open 600.10.01" in warning


@pytest.mark.parametrize(
    "offers",
    [
        [],  # apt has not read the repository
        [AvailableVersion("kubelet", "1.35.9-1.1", "https://pkgs.k8s.io/core:/stable:/v1.35/deb")],
        [AvailableVersion("nvidia-open", "1.0-1", "https://elsewhere.example/debian12")],
    ],
)
def test_another_repository_says_nothing(offers: list[AvailableVersion]) -> None:
    assert evaluate({}, offers) == ([], [])


def test_what_is_installed_already_need_not_be_offered() -> None:
    state = replace(HOST, packages={"nvidia-open": "590.99.99-1"})
    assert evaluate({"driver": {"version": "590.99.99"}}, state=state) == ([], [])


def test_one_missing_version_is_one_problem_for_all_hosts() -> None:
    parsed = parse_settings({"versions": {"kubernetes": {"version": "1.37.0"}}})
    items = checks.required(WORKER, HOST, parsed, versions.lock(parsed))
    problems, _ = checks.missing_versions({"a": items, "b": items}, {"a": OFFERS, "b": OFFERS})
    assert [problem.cause.partition(":")[0] for problem in problems] == ["from a, b"]
