"""Where a host downloads from follows the settings, and a silent place is named with its use."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
from pyinfra import logger

from deploys.phases import preflight
from deploys.run.context import Run
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.transient import PAUSES_S
from gpuboot.preflight.connectivity import endpoints, problems

Site = tuple[Callable[..., list[Problem]], list[int], list[str]]

LEADER = Node("cp1", "cp1", "192.0.2.1", "control_plane", gpus=0, leader=True)
GPU = Node("gpu1", "gpu1", "192.0.2.2", "worker", gpus=8, leader=False)


def test_a_node_needs_only_what_it_installs() -> None:
    leader, gpu = endpoints(parse_settings({}), LEADER), endpoints(parse_settings({}), GPU)
    assert "get.helm.sh:443" in leader
    assert "get.helm.sh:443" not in gpu
    assert "developer.download.nvidia.com:443" in gpu
    assert "developer.download.nvidia.com:443" not in leader
    assert "registry.k8s.io:443" in leader


def test_only_parts_that_are_installed_are_fetched() -> None:
    all_endpoints = endpoints(parse_settings({"exporter": {"kind": "chart"}}), LEADER)
    assert all_endpoints["nvidia.github.io:443"] == ["charts of dcgm-exporter"]
    plain = endpoints(parse_settings({}), LEADER)
    assert "nvidia.github.io:443" not in plain
    assert {"helm.ngc.nvidia.com:443", "prometheus-community.github.io:443"} <= set(plain)
    off = {
        "monitoring": {"enabled": False},
        "gpu_operator": {"enabled": False},
        "exporter": {"kind": "chart"},
    }
    bare = set(endpoints(parse_settings(off), LEADER))
    assert bare & {"helm.ngc.nvidia.com:443", "quay.io:443", "nvcr.io:443"} == set()
    assert "nvcr.io:443" in endpoints(parse_settings(off), GPU)


def test_a_mirror_takes_the_publishers_place() -> None:
    mirrors = {
        "apt": {
            name: {"url": "http://mirror:8080/x"}
            for name in ("docker", "kubernetes", "cuda", "toolkit")
        },
        "images": {"*": "http://mirror:8080/images"},
    }
    assert set(endpoints(parse_settings({"mirrors": mirrors}), GPU)) == {"mirror:8080"}


def test_behind_a_proxy_only_the_proxy_counts() -> None:
    settings = parse_settings({"proxy": {"https": "http://proxy:3128"}})
    assert set(endpoints(settings, LEADER)) == {"proxy:3128"}


def test_what_goes_round_the_proxy_counts_as_well() -> None:
    settings = parse_settings(
        {
            "proxy": {"https": "http://u:secret@proxy:3128", "no_proxy": [".corp.example"]},
            "mirrors": {"helm": "https://mirror.corp.example/helm"},
        }
    )
    assert endpoints(settings, LEADER) == {
        "proxy:3128": ["what comes by the HTTP proxy"],
        "mirror.corp.example:443": ["Helm"],
    }


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    """Preflight of a site whose answers come one after the other."""
    waits: list[int] = []
    messages: list[str] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(logger, "info", messages.append)

    def check_connectivity(
        *answers: dict[str, list[str]], pauses: tuple[int, ...] = PAUSES_S
    ) -> list[Problem]:
        remaining_answers = list(answers)
        monkeypatch.setattr(
            preflight,
            "_without_answer",
            lambda run, predicate: (
                remaining_answers.pop(0) if len(remaining_answers) > 1 else remaining_answers[0]
            ),
        )
        run = SimpleNamespace(nodes=[LEADER, GPU], states={"gpu1": 1}, settings=parse_settings({}))
        return preflight._unreachable(cast(Run, run), pauses)

    return check_connectivity, waits, messages


SILENT = {"gpu1": ["nvcr.io:443"]}


def test_a_place_that_comes_back_is_waited_for(site: Site) -> None:
    check_connectivity, waits, messages = site
    assert check_connectivity(SILENT, SILENT, {}) == []
    assert waits == [1, 2]
    assert messages[0] == "waiting for nvcr.io:443: no answer to 1 hosts (again in 1 s)"


def test_a_place_that_stays_silent_is_a_problem_after_a_minute(site: Site) -> None:
    check_connectivity, waits, _ = site
    assert len(check_connectivity(SILENT)) == 1
    assert waits == list(PAUSES_S)


def test_nobody_waits_where_the_run_cannot_start_anyway(site: Site) -> None:
    check_connectivity, waits, _ = site
    assert len(check_connectivity(SILENT, pauses=())) == 1
    assert waits == []


def test_a_silent_place_is_named_with_what_comes_from_it() -> None:
    (problem,) = problems(parse_settings({}), [LEADER, GPU], {"gpu1": ["nvcr.io:443"]})
    assert problem.host == "gpu1"
    assert "nvcr.io:443 does not answer (images of nvcr.io)" in problem.cause
    assert "mirrors" in problem.remedy


def test_one_silent_place_is_one_problem_for_all_hosts() -> None:
    silent = {"cp1": ["ghcr.io:443"], "gpu1": ["ghcr.io:443"]}
    (problem,) = problems(parse_settings({}), [LEADER, GPU], silent)
    assert problem.host == ""
    assert problem.cause.startswith("from cp1, gpu1: ghcr.io:443 does not answer")


def test_a_site_without_internet_is_one_problem() -> None:
    silent = {node.host: list(endpoints(parse_settings({}), node)) for node in (LEADER, GPU)}
    assert sum(map(len, silent.values())) > 15
    (problem,) = problems(parse_settings({}), [LEADER, GPU], silent)
    assert problem.cause == "from cp1, gpu1: none of the addresses to download from answers"
    assert "mirrors" in problem.remedy
