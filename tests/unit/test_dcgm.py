"""DCGM's host engine: its packages, who may reach it, and versions that go together."""

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import SettingsError, parse_settings
from gpuboot.docker.compose import compose_services
from gpuboot.hosts import dcgm_engine, platforms
from gpuboot.hosts.node_state import parse
from gpuboot.monitoring import rules
from gpuboot.monitoring.charts.exporter import exporter_values
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.monitoring.rules.requirements import IN_CLUSTER, ON_DOCKER_HOSTS, Requirement
from gpuboot.preflight.package_problems import required
from tests.unit.test_node_state import ANSWER

STATE = replace(parse(ANSWER), packages={}, ports={}, driver_loaded="595.91.07")
UBUNTU = platforms.of(STATE)
ROCKY = platforms.of(replace(STATE, os_id="rocky", os_version="9.6"))
ON = {"dcgm": "host"}
GPU1 = Node("gpu1", "gpu1", "10.0.0.5", "worker", gpus=1, leader=False)


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("610.43.02", "cuda13"),
        ("580.65.06", "cuda13"),
        ("575.57.08", "cuda12"),
        ("525.60.13", "cuda12"),
        ("520.61.05", "cuda11"),
    ],
)
def test_packages_are_of_the_driver_s_cuda(driver: str, cuda: str) -> None:
    assert dcgm_engine.packages(UBUNTU, "4.6.1", driver) == {
        "datacenter-gpu-manager-4-core": "1:4.6.1-*",
        f"datacenter-gpu-manager-4-{cuda}": "1:4.6.1-*",
        "datacenter-gpu-manager-4-proprietary": "1:4.6.1-*",
        f"datacenter-gpu-manager-4-proprietary-{cuda}": "1:4.6.1-*",
    }


def test_rpm_packages_are_asked_without_an_epoch() -> None:
    assert set(dcgm_engine.packages(ROCKY, "4.6.1", "595.91.07").values()) == {"4.6.1-*"}


@pytest.mark.parametrize(
    ("installed", "older"),
    [
        ({}, False),
        ({"datacenter-gpu-manager-4-core": "1:4.5.3-1"}, True),
        ({"datacenter-gpu-manager-4-core": "4.5.10-1"}, True),
        ({"datacenter-gpu-manager-4-core": "1:4.6.1-1"}, False),
        ({"datacenter-gpu-manager-4-core": "1:4.10.0-1"}, False),
    ],
)
def test_an_earlier_engine_is_known(installed: dict[str, str], older: bool) -> None:
    assert dcgm_engine.is_older(installed, "4.6.1") is older


def test_the_engine_listens_on_the_node_alone() -> None:
    [(path, text)] = dcgm_engine.files().items()
    assert path == "/etc/systemd/system/nvidia-dcgm.service.d/gpuboot.conf"
    starts = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    # the first, empty one takes away what NVIDIA's own unit has
    assert starts == [
        "ExecStart=",
        "ExecStart=/usr/bin/nv-hostengine -n --service-account nvidia-dcgm -b 127.0.0.1 -p 5555",
    ]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({}, None),
        ({"ports": {5555: "nv-hostengine"}}, None),
        ({"ports": {5555: "?"}}, None),
        ({"ports": {5555: "python3"}}, "TCP port 5555 is in use by python3"),
        ({"packages": {"datacenter-gpu-manager": "1:3.3.9"}}, "datacenter-gpu-manager 1:3.3.9 is"),
        ({"packages": {"datacenter-gpu-manager-4-core": "1:4.6.1-1"}}, None),
        ({"driver_loaded": "390.157"}, "DCGM 4 has no packages for driver 390.157"),
        ({"driver_loaded": ""}, None),
    ],
)
def test_preflight_tells_what_is_in_the_way(changes: dict[str, Any], cause: str | None) -> None:
    settings = parse_settings({**ON, "driver": {"enabled": False}})
    problems = list(
        dcgm_engine.problems(GPU1, replace(STATE, **changes), settings, versions.lock(settings))
    )
    assert [text.startswith(cause or "") for text, _ in problems] == ([True] if cause else [])


@pytest.mark.parametrize(("settings", "gpus"), [({}, 1), (ON, 0)])
def test_where_no_engine_comes_nothing_is_in_its_way(settings: dict[str, Any], gpus: int) -> None:
    parsed = parse_settings(settings)
    state = replace(STATE, ports={5555: "python3"})
    assert not list(
        dcgm_engine.problems(replace(GPU1, gpus=gpus), state, parsed, versions.lock(parsed))
    )


@pytest.mark.parametrize(("settings", "requested"), [(ON, True), ({}, False)])
def test_preflight_looks_for_its_versions_in_the_repository(
    settings: dict[str, Any], requested: bool
) -> None:
    parsed = parse_settings(settings)
    state = replace(STATE, packages={"datacenter-gpu-manager-4-proprietary": "1:4.6.1-1"})
    patterns = {
        item.package: item.pattern for item in required(GPU1, state, parsed, versions.lock(parsed))
    }
    assert "nvidia-open" in patterns or "cuda-drivers" in patterns
    of_dcgm = {name: pattern for name, pattern in patterns.items() if "gpu-manager" in name}
    expected = dcgm_engine.packages(UBUNTU, "4.6.1", "595.91.07")
    del expected["datacenter-gpu-manager-4-proprietary"]  # it is there
    assert of_dcgm == (expected if requested else {})


def test_a_driver_that_is_too_old_is_another_check_s_to_tell() -> None:
    parsed = parse_settings({**ON, "driver": {"version": "390.157"}})
    required_packages = required(GPU1, STATE, parsed, versions.lock(parsed))
    assert not [item for item in required_packages if "gpu-manager" in item.package]


def test_by_default_the_exporter_has_its_own_engine() -> None:
    settings = parse_settings({})
    assert settings.engine is None
    assert "dcgm" not in operator_values(settings, versions.lock(settings))


@pytest.mark.parametrize("kind", ["operator", "chart"])
def test_either_exporter_reads_the_host_s_engine(kind: str) -> None:
    settings = parse_settings({**ON, "exporter": {"kind": kind}})
    lock = versions.lock(settings)
    variable = {"name": "DCGM_REMOTE_HOSTENGINE_INFO", "value": "localhost:5555"}
    if kind == "operator":
        values = operator_values(settings, lock)["dcgmExporter"]
        assert variable in values["env"]
    else:
        values = exporter_values(settings, lock)
        assert variable in values["extraEnv"]
    assert values["hostNetwork"] is True


EXPORTER = "4.5.3-4.8.3-distroless"


@pytest.mark.parametrize(
    ("engine", "exporter", "cause"),
    [
        ("4.6.1", "4.6.1-4.8.4-distroless", None),
        ("4.5.0", "4.6.1-4.8.4-distroless", None),
        ("4.6.1", EXPORTER, "newer than the DCGM 4.5.3 in the exporter"),
        ("4.10.0", "4.9.0-4.9.0-ubi9@sha256:0", "newer than the DCGM 4.9.0 in the exporter"),
        ("3.3.9", "4.6.1-4.8.4-distroless", "installs DCGM 4 alone"),
        ("4.6.1", "our-own", None),
    ],
)
def test_no_exporter_is_older_than_its_engine(
    engine: str, exporter: str, cause: str | None
) -> None:
    data = {"dcgm": {"version": engine}, "images": {"dcgm_exporter": exporter}}
    settings = parse_settings({**ON, "versions": data})
    if cause is None:
        assert versions.lock(settings).dcgm.version == engine
        return
    with pytest.raises(SettingsError, match=cause):
        versions.lock(settings)


def test_an_exporter_with_its_own_engine_may_be_of_any_version() -> None:
    versions.lock(parse_settings({"versions": {"images": {"dcgm_exporter": EXPORTER}}}))


def test_timers_ask_every_five_minutes_and_every_day() -> None:
    files = dcgm_engine.check_files("gpu1", "/metrics")
    config = files["/etc/gpuboot/dcgm.conf"]
    assert "node=gpu1\nmetrics=/metrics\nresults=/var/lib/gpuboot/dcgm\nsettle_s=65\n" in config
    health, diag = (files[f"/etc/systemd/system/{timer}"] for timer in dcgm_engine.TIMERS)
    assert "OnUnitInactiveSec=5min" in health
    assert "OnCalendar=*-*-* 03:00:00" in diag
    assert "OnActiveSec" not in diag, "systemd would put it off by RandomizedDelaySec as well"
    for check in ("health", "diag"):
        unit = files[f"/etc/systemd/system/gpuboot-dcgm-{check}.service"]
        assert f"ExecStart=/usr/local/sbin/gpuboot-dcgm-check {check}\n" in unit


def test_all_that_is_written_is_known_when_it_has_to_go() -> None:
    paths = {
        *dcgm_engine.files(),
        *dcgm_engine.check_files("gpu1", "/metrics"),
        dcgm_engine.PROGRAM,
    }
    assert paths < set(dcgm_engine.traces("/metrics"))


def test_only_hosts_with_an_engine_of_their_own_have_its_alerts() -> None:
    def names(settings: dict[str, Any], site: Requirement) -> set[str]:
        alerts = rules.loaded_alerts(parse_settings(settings), site)
        return {alert.name for alert in alerts.get("dcgm", ())}

    off = {**ON, "monitoring": {"values": {"nodeExporter": {"enabled": False}}}}
    for site in (IN_CLUSTER, ON_DOCKER_HOSTS):
        assert names(ON, site) == {
            "DCGMHealthFail", "DCGMHealthWarn", "DCGMDiagFail", "DCGMCheckStale",
        }  # fmt: skip
        assert names({}, site) == names(off, site) == set()


def test_node_exporter_of_a_docker_host_reads_what_timers_leave() -> None:
    def arguments(settings: dict[str, Any], nvswitches: bool = False) -> list[str]:
        parsed = parse_settings(settings)
        locked = versions.lock(parsed)
        command = compose_services.node_exporter(GPU1, parsed, locked, nvswitches)["command"]
        return [option for option in command if "textfile" in option]

    argument = "--collector.textfile.directory=/host/var/lib/node_exporter/textfile_collector"
    assert arguments(ON) == [argument]
    assert arguments({}) == []
    assert arguments({}, nvswitches=True) == [argument]
