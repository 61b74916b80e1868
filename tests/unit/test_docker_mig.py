"""MIG layouts of Docker hosts: the file that their program reads, and the proof of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.docker import docker_checks, docker_mig
from gpuboot.hosts import mig as hosts_mig
from gpuboot.hosts import mig_profiles
from gpuboot.hosts.node_state import parse
from tests.unit import mig_evidence, recordings
from tests.unit.test_node_state import ANSWER

H100, A100_40 = 0x2330, 0x20B0
NODE = Node("gpu1", "gpu1", "192.0.2.21", "docker", 2, leader=False, groups=("gpu_hosts",))
CUSTOM_LAYOUTS = {
    "mine": [{"gpus": [1], "instances": {"1g.10gb": 2, "4g.40gb": 1, "1g.10gb+me": 1}}]
}


def lines(share: dict[str, Any], devices: tuple[int, ...] = (H100, H100)) -> list[str]:
    settings = parse_settings({"sharing": {"gpu_hosts": share}, "mig_layouts": CUSTOM_LAYOUTS})
    return docker_mig.layout(NODE, settings, devices).splitlines()[1:]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("all-1g.20gb", ["0 1g.20gb 1g.20gb 1g.20gb 1g.20gb"]),
        ("all-balanced", ["0 3g.40gb 2g.20gb 1g.10gb 1g.10gb"]),
        ("all-disabled", ["0"]),
        ("all-1g.10gb.me", ["0 1g.10gb+me"]),
    ],
)
def test_gpus_that_are_alike(layout: str, expected: list[str]) -> None:
    assert lines({"mig": layout}) == [*expected, expected[0].replace("0", "1", 1)]


def test_each_model_gets_what_the_layout_makes_of_it() -> None:
    layout_lines = lines({"mig": "all-1g.10gb"}, (A100_40, H100))
    assert layout_lines == ["0 1g.10gb 1g.10gb 1g.10gb 1g.10gb", "1" + " 1g.10gb" * 7]


def test_what_only_the_driver_knows_is_asked_of_it_on_the_host() -> None:
    assert lines({"mig": "all-1g.99gb"}, (H100, 0x3FFF))[1:] == ["1 all-1g.99gb"]
    assert lines({"mig": "all-balanced"}, (0x3FFF,)) == ["0 all-balanced"]
    settings = parse_settings({"sharing": {"gpu_hosts": {"mig": "all-1g.99gb"}}})
    layout = docker_mig.layout(NODE, settings, (0x3FFF,), {0x3FFF: {"1g.99gb": 2}})
    assert layout.splitlines()[1:] == ["0 1g.99gb 1g.99gb"]


def test_a_layout_of_the_settings() -> None:
    assert lines({"mig": "mine"}) == ["0", "1 4g.40gb 1g.10gb 1g.10gb 1g.10gb+me"]


def test_a_host_without_a_layout_keeps_its_own() -> None:
    assert lines({}) == []
    settings = parse_settings(
        {"sharing": {"gpu_hosts": {"mig": "mine"}}, "mig_layouts": CUSTOM_LAYOUTS}
    )
    assert docker_mig.layout(replace(NODE, gpus=0), settings, ()) == ""
    assert docker_mig.layout(replace(NODE, groups=()), settings, (H100, H100)) == ""


@pytest.mark.parametrize("card", mig_profiles.CARDS, ids=lambda card: card.name)
def test_the_largest_instances_come_first(card: mig_profiles.Card) -> None:
    for _, instances in mig_profiles.of_all("all-balanced"):
        if all(card.profile(name) for name in instances):
            sizes = [card.profile(name) for name in docker_mig._ordered(instances)]
            memory = [item.memory for item in sizes if item]
            assert memory == sorted(memory, reverse=True)


def test_nobody_is_warned_of_a_gpu_operator_that_there_is_not() -> None:
    states = {"gpu1": replace(parse(ANSWER), mig_instances=4, cluster_ca="")}
    settings = parse_settings({})
    assert hosts_mig.warnings([NODE], states, settings) == []
    assert hosts_mig.warnings([replace(NODE, role="worker")], states, settings)


def test_the_instances_are_those_of_the_layout() -> None:
    machine = mig_evidence.machine(recordings.MIXED)
    profile_counts = Counter(item.profile for gpu in machine.gpus for item in gpu.instances)
    for right in (None, profile_counts):
        findings = docker_checks.runtime(replace(machine, layout=right))
        assert {item.gpu_uuid for item in findings} == {device.uuid for device in machine.devices}
        assert {item.status for item in findings} == {"pass"}
    [failed] = docker_checks.runtime(replace(machine, layout={"7g.80gb": 1}))
    assert failed.status == "fail"
    assert "its MIG instances are not those of the settings" in failed.detail
    assert "gpuboot-mig.service" in failed.remedy
