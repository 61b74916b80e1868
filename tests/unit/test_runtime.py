"""Texts that base, driver and runtime phases write, from settings."""

import tomllib
from dataclasses import replace
from typing import Any

import pytest

from deploys.parts.driver import nvswitch_operations as nvswitches
from deploys.parts.driver import operations as driver
from deploys.parts.driver.fact import DriverState
from deploys.parts.driver.operations import verdict
from deploys.parts.gpu_exclusion import operations as gpu_exclusion
from deploys.parts.units import operations as units
from deploys.phases import base, drivers, runtime
from deploys.run.context import Context
from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.node_state import Unit, parse
from gpuboot.hosts.pci import PciDevice
from tests.unit.test_node_state import ANSWER

STATE = parse(ANSWER)
NODE = Node("gpu1", "gpu1", "10.0.0.5", "worker", gpus=1, leader=False)


def context(settings: dict[str, Any] | None = None, **state: Any) -> Context:
    parsed = parse_settings(settings or {})
    states = {"gpu1": replace(STATE, **state)}
    return Context(parsed, versions.lock(parsed), (NODE,), NODE, states)


def test_root_config_is_toml_once_the_version_is_known() -> None:
    text = runtime.root_config(context({"runtime": {"restrict_oom_score_adj": True}}))
    config = tomllib.loads(text.replace("@VERSION@", "4"))
    cri = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert config["version"] == 4
    assert cri["restrict_oom_score_adj"] is True
    assert cri["disable_hugetlb_controller"] is True
    assert cri["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True
    images = config["plugins"]["io.containerd.cri.v1.images"]
    assert images["pinned_images"]["sandbox"].startswith("registry.k8s.io/pause:3.")


def handlers(node_context: Context) -> dict[str, Any]:
    config = tomllib.loads(runtime.root_config(node_context).replace("@VERSION@", "4"))
    containerd: dict[str, Any] = config["plugins"]["io.containerd.cri.v1.runtime"]["containerd"]
    return dict(containerd["runtimes"])


def test_gpu_nodes_have_the_handlers_of_the_operator_s_runtime_classes() -> None:
    """It makes nvidia-cdi and nvidia-legacy too; nvidia-ctk adds nvidia to what stands here."""
    handler_table = handlers(context())
    assert set(handler_table) == {"runc", "nvidia-cdi", "nvidia-legacy"}
    for name in ("nvidia-cdi", "nvidia-legacy"):
        assert handler_table[name]["options"] == {
            "BinaryName": "/usr/bin/nvidia-container-runtime",
            "SystemdCgroup": True,
        }
    without = replace(context(), node=replace(NODE, gpus=0))
    assert set(handlers(without)) == {"runc"}


def test_mirrored_registries() -> None:
    settings = {
        "mirrors": {
            "images": {"registry.k8s.io": "https://m/v2/registry.k8s.io", "*": "https://m/v2/any"},
            "ca_bundle": "/ca.crt",
        }
    }
    files = runtime.registry_files(context(settings))
    assert list(files) == [
        "/etc/containerd/certs.d/registry.k8s.io/hosts.toml",
        "/etc/containerd/certs.d/_default/hosts.toml",
    ]
    hosts = tomllib.loads(files["/etc/containerd/certs.d/registry.k8s.io/hosts.toml"])
    assert hosts["server"] == "https://m/v2/registry.k8s.io"
    assert hosts["host"]["https://m/v2/registry.k8s.io"] == {
        "capabilities": ["pull", "resolve"],
        "override_path": True,
        "ca": "/ca.crt",
    }


def test_no_mirror_no_files() -> None:
    assert runtime.registry_files(context()) == {}


def test_proxy_leaves_the_cluster_alone() -> None:
    direct_hosts = runtime.direct(
        context({"mirrors": {"images": {"*": "https://m.example/v2/any"}}})
    )
    assert {"10.244.0.0/16", "10.96.0.0/12", "10.0.0.0/24", ".svc", "m.example"} <= set(
        direct_hosts
    )


def test_another_worker_is_no_change_on_the_hosts_that_are_there() -> None:
    node_context = context({"proxy": {"http": "http://p:3128"}})
    worker = replace(node_context.node, name="gpu9", host="gpu9", address="10.0.0.99", leader=False)
    extended_context = replace(
        node_context, nodes=(*node_context.nodes, replace(worker, role="worker"))
    )
    assert runtime.direct(extended_context) == runtime.direct(node_context)
    assert base.known_names(extended_context) == base.known_names(node_context)
    assert base.known_names(replace(extended_context, node=extended_context.nodes[-1])) == {
        "gpu9": "10.0.0.99"
    }


def test_apt_conf() -> None:
    plain = base.apt_conf(context())
    assert "Proxy" not in plain
    assert '"nvidia";' in plain
    settings = {
        "proxy": {
            "https": "http://user:secret@p:3128",
            "no_proxy": [".example", "10.0.0.0/8", "h"],
        },
        "mirrors": {"apt": {"cuda": {"url": "https://m.example/c"}}, "ca_bundle": "/ca.crt"},
    }
    text = base.apt_conf(context(settings))
    assert 'Acquire::https::Proxy "http://p:3128";' in text
    assert 'Acquire::https::Proxy::m.example "DIRECT";' in text
    assert 'Acquire::https::Proxy::h "DIRECT";' in text
    assert "10.0.0.0" not in text
    assert "Proxy::." not in text
    assert "secret" not in text
    assert 'Acquire::https::m.example::CaInfo "/ca.crt";' in text


def test_time_is_kept_once() -> None:
    assert "chrony" in base.package_names(context(units={}))
    assert "chrony" not in base.package_names(context(units={"ntpsec": Unit("active", "enabled")}))
    assert "chrony" not in base.package_names(context(units={}, container="systemd-nspawn"))


def test_fabric_manager_goes_with_nvswitches() -> None:
    single_gpu = PciDevice("0000:10:00.0", 0x2330, "0x030200")
    assert drivers.services(context()) == [
        "nvidia-persistenced.service", "nvidia-fabricmanager.service",
    ]  # fmt: skip
    assert drivers.services(context(pci=(single_gpu,))) == ["nvidia-persistenced.service"]
    never = {"driver": {"fabric_manager": "never"}}
    assert drivers.services(context(never)) == ["nvidia-persistenced.service"]


GOOD = DriverState("595.91.07", True, "595.91.07", "", True, ("GPU-1", "GPU-2"), "")


def test_a_driver_as_promised() -> None:
    assert verdict(GOOD, "595.91.07", 2) is None
    assert verdict(GOOD, "", 2) is None


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"loaded": ""}, "no NVIDIA driver is loaded"),
        (
            {"loaded": "595.71.05"},
            "driver 595.71.05 is loaded, the version lock asks for 595.91.07",
        ),
        ({"module": "600.1"}, "the module on disk is 600.1"),
        ({"gpus": ("GPU-1",)}, "nvidia-smi lists 1 GPUs, the inventory promises 2"),
        ({"gpus": (), "smi": "Driver/library version mismatch"}, "mismatch"),
    ],
)
def test_a_driver_that_is_not(changes: dict[str, Any], cause: str) -> None:
    result = verdict(replace(GOOD, **changes), "595.91.07", 2)
    assert result is not None
    assert cause in result[0]


def test_a_reboot_for_the_driver_is_waited_for_as_long_as_the_site_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments: dict[str, Any] = {}
    monkeypatch.setattr(units, "running", lambda **_: None)
    monkeypatch.setattr(drivers, "_install", lambda *_: None)
    monkeypatch.setattr(driver, "loaded", lambda **keywords: arguments.update(keywords))
    monkeypatch.setattr(gpu_exclusion, "excluded", lambda **_: None)
    monkeypatch.setattr(driver, "checked", lambda **_: None)
    monkeypatch.setattr(nvswitches, "watched", lambda **_: None)
    docker = replace(
        context({"driver": {"reboot_timeout_s": 777}}), node=replace(NODE, role="docker")
    )
    monkeypatch.setattr(drivers, "current", lambda: docker)
    drivers.drivers._inner()
    assert arguments["timeout_s"] == 777
