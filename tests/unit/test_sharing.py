"""Shared GPUs: which settings hold for a node, what it then offers, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings, SettingsError, parse_settings
from gpuboot.hosts import gpu_sharing, sharing_checks
from gpuboot.hosts.node_state import parse
from gpuboot.hosts.pci import PciDevice
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.site.load_site import load
from tests.unit.test_node_state import ANSWER

H100, H200, A100_40, T4, V100 = 0x2330, 0x2335, 0x20B0, 0x1EB8, 0x1DB5
NODE = Node("h2", "gpu2", "10.0.0.2", "worker", 2, False, groups=("workers", "inference"))
HALF = {"half": [{"gpus": [0], "instances": {"3g.40gb": 2}}, {"gpus": [1]}]}


def shared(mixed: bool = False, **share: Any) -> Settings:
    strategy = {"gpu_operator": {"mig_strategy": "mixed"}} if mixed else {}
    return parse_settings({**strategy, "sharing": {"inference": share}, "mig_layouts": HALF})


def test_a_hosts_own_entry_wins_over_its_group() -> None:
    data = {"sharing": {"inference": {"time_slices": 4}, "h2": {"time_slices": 2}}}
    assert gpu_sharing.replicas(NODE, parse_settings(data)) == 2
    of_group = replace(NODE, host="h3", name="gpu3")
    assert gpu_sharing.replicas(of_group, parse_settings(data)) == 4
    host_entry = replace(of_group, groups=("workers",))
    assert (
        gpu_sharing.replicas(
            host_entry, parse_settings({**data, "gpu_operator": {"time_slices": 3}})
        )
        == 3
    )


@pytest.mark.parametrize(
    ("settings", "devices", "resources"),
    [
        (shared(mig="all-1g.10gb"), [H100] * 2, {"nvidia.com/gpu": 14}),
        (shared(mig="all-1g.10gb"), [A100_40] * 2, {"nvidia.com/gpu": 8}),
        (shared(mixed=True, mig="all-1g.10gb"), [H100] * 2, {"nvidia.com/mig-1g.10gb": 14}),
        (
            shared(mixed=True, mig="all-1g.10gb.me"),
            [H100] * 2,
            {"nvidia.com/mig-1g.10gb.me": 2},
        ),
        (
            shared(mixed=True, mig="all-balanced"),
            [H200] * 2,
            {"nvidia.com/mig-1g.18gb": 4, "nvidia.com/mig-2g.35gb": 2, "nvidia.com/mig-3g.71gb": 2},
        ),
        (
            shared(mixed=True, mig="half", time_slices=3),
            [H100] * 2,
            {"nvidia.com/gpu": 3, "nvidia.com/mig-3g.40gb": 6},
        ),
        (shared(mig="all-disabled"), [H100] * 2, {"nvidia.com/gpu": 2}),
        (shared(mps=8), [H100] * 2, {"nvidia.com/gpu": 16}),
    ],
)
def test_what_a_node_offers(
    settings: Settings, devices: list[int], resources: dict[str, int]
) -> None:
    assert gpu_sharing.offer(NODE, settings, devices).resources == resources


def plugin(settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """The device plugin's values, and the configuration that nodes of the group ask for."""
    _, lock = load({})
    config = operator_values(settings, lock)["devicePlugin"]["config"]
    label = gpu_sharing.offer(NODE, settings).labels["nvidia.com/device-plugin.config"]
    return config, yaml.safe_load(config["data"][label])


def test_time_slices_of_one_group() -> None:
    """The form is k8s-device-plugin's, README.md, "With CUDA Time-Slicing"."""
    config, chart_values = plugin(shared(time_slices=4, one_per_pod=True))
    assert chart_values["sharing"] == {
        "timeSlicing": {
            "renameByDefault": False,
            "failRequestsGreaterThanOne": True,
            "resources": [{"name": "nvidia.com/gpu", "replicas": 4}],
        }
    }
    assert "sharing" not in yaml.safe_load(config["data"][config["default"]])


def test_mps_of_one_group() -> None:
    _, chart_values = plugin(shared(mps=8))
    assert chart_values["sharing"]["mps"]["resources"] == [
        {"name": "nvidia.com/gpu", "replicas": 8}
    ]


def test_mig_instances_are_shared_by_their_own_resources() -> None:
    _, chart_values = plugin(shared(mixed=True, mig="half", time_slices=2))
    names = [item["name"] for item in chart_values["sharing"]["timeSlicing"]["resources"]]
    assert names == ["nvidia.com/gpu", "nvidia.com/mig-3g.40gb"]


def test_another_content_renews_the_pods_that_read_it() -> None:
    """The default's name is in the pod template, contents of other names are not."""
    before, _ = plugin(shared(time_slices=4))
    after, _ = plugin(shared(time_slices=8))
    assert before["default"] != after["default"]


def test_layouts_of_the_settings_are_a_file_for_the_mig_manager() -> None:
    """Form: gpu-operator v26.7.0, assets/state-mig-manager/0400_configmap.yaml."""
    _, lock = load({})
    data = {
        "gpu_operator": {"mig_strategy": "mixed"},
        "sharing": {"inference": {"mig": "half"}, "h9": {"mig": "all-1g.10gb"}},
        "mig_layouts": HALF,
    }
    settings = parse_settings(data)
    manager = operator_values(settings, lock)["migManager"]
    layouts = yaml.safe_load(manager["config"]["data"]["config.yaml"])["mig-configs"]
    label = gpu_sharing.offer(NODE, settings, [H100] * 2).labels["nvidia.com/mig.config"]
    assert layouts[label] == [
        {"devices": [0], "mig-enabled": True, "mig-devices": {"3g.40gb": 2}},
        {"devices": [1], "mig-enabled": False},
    ]
    assert layouts["all-disabled"] == [{"devices": "all", "mig-enabled": False}]
    [a100, h100] = layouts["all-1g.10gb"]
    assert a100["mig-devices"] == {"1g.10gb": 4}
    assert "0x20B010DE" in a100["device-filter"]
    assert h100["mig-devices"] == {"1g.10gb": 7}
    assert {"0x233010DE", "0x20B210DE"} <= {*h100["device-filter"]}


def test_a_layout_that_is_the_same_for_all_models_names_none() -> None:
    """As the operator's, so that a model with the profile which is not in the table has it too."""
    _, lock = load({})
    data = {
        "gpu_operator": {"mig_strategy": "mixed"},
        "sharing": {"inference": {"mig": "half"}, "h9": {"mig": "all-1g.23gb"}},
        "mig_layouts": HALF,
    }
    manager = operator_values(parse_settings(data), lock)["migManager"]
    layouts = yaml.safe_load(manager["config"]["data"]["config.yaml"])["mig-configs"]
    assert layouts["all-1g.23gb"] == [
        {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.23gb": 7}}
    ]


def test_the_mig_managers_own_layouts_need_no_file() -> None:
    _, lock = load({})
    assert operator_values(shared(mig="all-1g.10gb"), lock)["migManager"] == {"enabled": True}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"time_slices": 2, "mps": 2}, "time_slices and mps exclude each other"),
        ({"mig": "all-1g.10gb", "mps": 2}, "shares no MIG instance by MPS"),
        ({"mig": "all-seven"}, "no MIG layout that gpuboot knows"),
        ({"mig": "half"}, "single needs one profile"),
        ({"mig": "all-balanced"}, "single needs one profile"),
        ({"mps": 49}, "less than or equal to 48"),
        ({"mig": "ALL"}, "takes the name of a MIG layout"),
    ],
)
def test_what_excludes_each_other_is_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as error_info:
        load({"sharing": {"inference": data}, "mig_layouts": HALF})
    assert words in str(error_info.value)


@pytest.mark.parametrize(
    ("sharing_conflict", "data", "words"),
    [
        ({"gpu_operator": {"mig_strategy": "mixed"}}, {"mps": 2}, "refuses mps under"),
        ({"gpu_operator": {"mig_strategy": "none"}}, {"mig": "all-1g.10gb"}, "no pod gets a MIG"),
        ({"gpu_operator": {"mig_manager": False}}, {"mig": "all-1g.10gb"}, "needs the MIG manager"),
        ({"gate": {"enabled": True}}, {"time_slices": 2}, "gate.enabled excludes"),
        (
            {"gpu_operator": {"enabled": False}, "exporter": {"kind": "chart"}},
            {"time_slices": 2},
            "set gpu_operator.enabled = True",
        ),
        ({"mig_layouts": {"twice": [{"gpus": [0]}, {"gpus": "all"}]}}, {}, "each GPU once"),
        ({"mig_layouts": {"all-mine": [{}]}}, {}, "the MIG manager's own"),
    ],
)
def test_what_other_settings_exclude(
    sharing_conflict: dict[str, Any], data: dict[str, Any], words: str
) -> None:
    with pytest.raises(SettingsError) as error_info:
        load({**sharing_conflict, "sharing": {"inference": data}})
    assert words in str(error_info.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as error_info:
        load({"sharing": {"a": {"time_slices": 2, "mps": 2, "mig": "x"}, "b": {"mig": "y"}}})
    assert len(error_info.value.problems) == 4


def test_names_that_the_inventory_lacks() -> None:
    settings = parse_settings({"sharing": {"infrence": {"time_slices": 2}}})
    [problem] = sharing_checks.of_inventory(settings, [NODE])
    assert "'infrence'" in problem.cause
    assert "inference" in problem.remedy


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"mig": "half"}, ""),  # of unlike profiles, which the operator's strategy refuses
        ({"mig": "all-balanced"}, ""),
        ({"mig": "all-disabled"}, ""),
        ({"time_slices": 2}, "time_slices and mps are for clusters"),
        ({"mig": "half", "mps": 2}, "time_slices and mps are for clusters"),
        ({"mig": "all-1g.99gb"}, ""),  # perhaps a model's that is newer than gpuboot
        ({"mig": "all-seven"}, "no MIG layout that gpuboot knows"),
    ],
)
def test_docker_hosts_have_mig_alone(data: dict[str, Any], words: str) -> None:
    settings = {
        "gpu_operator": {"enabled": False, "mig_manager": False},
        "exporter": {"kind": "chart"},
        "sharing": {"inference": data},
        "mig_layouts": HALF,
    }
    if not words:
        load(settings, docker_hosts=True)
        return
    with pytest.raises(SettingsError) as error_info:
        load(settings, docker_hosts=True)
    [problem] = error_info.value.problems
    assert words in problem.cause
    assert problem.remedy


def device_causes(settings: Settings, *devices: int) -> str:
    pci = tuple(PciDevice(f"0000:{n:02x}:00.0", item, "0x030200") for n, item in enumerate(devices))
    state = replace(parse(ANSWER), pci=pci)
    return "\n".join(cause for cause, _ in sharing_checks.of_host(NODE, state, settings))


@pytest.mark.parametrize(
    ("settings", "devices", "words"),
    [
        (shared(mig="all-1g.10gb"), [H100, H100], ""),
        (shared(mig="all-1g.10gb"), [H200, H200], "H200 has no MIG layout all-1g.10gb"),
        (shared(mig="all-1g.10gb"), [T4, T4], "MIG cannot divide T4"),
        (shared(mig="all-disabled"), [H100, H100], ""),
        (shared(mixed=True, mig="half"), [H100, H100], ""),
        (shared(mixed=True, mig="half"), [H200, H200], "has no MIG profile 3g.40gb"),
        (shared(mixed=True, mig="half"), [H100], ""),
        (shared(mps=17), [V100, V100], "16 clients"),
        (shared(mps=17), [T4, T4], ""),
    ],
)
def test_what_gpus_cannot_do(settings: Settings, devices: list[int], words: str) -> None:
    message = device_causes(settings, *devices)
    assert words in message
    assert bool(message) is bool(words)


@pytest.mark.parametrize(
    ("instances", "fits"),
    [
        ({"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}, True),
        ({"4g.40gb": 1, "3g.40gb": 1}, True),
        ({"3g.40gb": 2}, True),
        ({"3g.40gb": 2, "1g.10gb": 1}, False),  # 3g takes 4 of 8 slices of memory
        ({"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}, False),  # 8 of 7 slices of compute
        ({"2g.20gb": 3, "1g.10gb": 1}, True),
        ({"2g.20gb": 3, "1g.10gb": 2}, False),
        ({"1g.20gb": 4}, True),
        ({"1g.20gb": 3, "2g.20gb": 2}, False),
        ({"1g.10gb+me": 1, "1g.10gb": 6}, True),
        ({"1g.10gb+me": 2}, False),
        ({"7g.80gb": 1}, True),
    ],
)
def test_what_fits_on_one_gpu(instances: dict[str, int], fits: bool) -> None:
    """Placements: NVIDIA's MIG User Guide, "Supported MIG Profiles"."""
    layout = {"mine": [{"instances": instances}]}
    settings = parse_settings(
        {
            "gpu_operator": {"mig_strategy": "mixed"},
            "sharing": {"h2": {"mig": "mine"}},
            "mig_layouts": layout,
        }
    )
    assert ("do not fit" in device_causes(settings, H100, H100)) is not fits
