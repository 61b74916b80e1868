"""Settings: defaults are complete, and every mistake is named at once."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.config import settings, versions
from gpuboot.config.settings.base import seconds


def problems(data: dict[str, Any]) -> list[str]:
    with pytest.raises(settings.SettingsError) as error_info:
        versions.lock(settings.parse_settings(data))
    return [problem.cause for problem in error_info.value.problems]


def test_an_empty_dict_is_a_complete_answer() -> None:
    assert versions.lock(settings.parse_settings({})).kubernetes.minor == "1.37"


def test_another_minor_release_is_one_line() -> None:
    data = {"versions": {"kubernetes": {"version": "1.35.4"}}}
    pinned = versions.lock(settings.parse_settings(data)).kubernetes
    assert (pinned.version, pinned.minor) == ("1.35.4", "1.35")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"clutser": {}}, "unknown setting clutser"),
        ({"cluster": {"pod_cidr": "10.0.0.0/33"}}, "cluster.pod_cidr"),
        ({"cluster": {"pod_cidr": "10.96.0.0/16"}}, "overlaps cluster.service_cidr"),
        ({"driver": {"version": "latest"}}, "driver.version"),
        ({"runtime": {"mode": "docker"}}, "runtime.mode"),
        ({"cluster": {"kubelet": {"cgroupDriver": "cgroupfs"}}}, "cluster.kubelet may not set"),
        ({"runtime": {"mode": "cdi"}}, "device plugin of their own"),
        ({"gpu_operator": {"enabled": False}}, "exporter.kind"),
        ({"mirrors": {"images": {"nvcr.io": "mirror/nvcr"}}}, "mirrors.images.nvcr.io"),
        ({"versions": {"kubernetes": {"version": "1.37.2", "minor": "1.36"}}}, "minor"),
        ({"versions": {"kubernetez": {}, "driver": {"vers": "1"}}}, "versions.kubernetez"),
        (
            {"versions": {"kubernetes": {"version": "1.32.9"}}},
            "supports Kubernetes 1.33 to 1.37, not 1.32.9",
        ),
        (
            {"versions": {"kubernetes": {"version": "1.24.9"}}},
            "kube-prometheus-stack 88.5.3 needs Kubernetes 1.25 or newer, not 1.24.9",
        ),
        (
            {"versions": {"kubernetes": {"version": "1.16.9"}}},
            "flannel 0.28.10 needs Kubernetes 1.17 or newer, not 1.16.9",
        ),
    ],
)
def test_a_mistake_is_named(data: dict[str, Any], message: str) -> None:
    assert any(message in cause for cause in problems(data)), problems(data)


@pytest.mark.parametrize(
    ("text", "value"), [("15s", 15), ("250ms", 0.25), ("2m", 120), ("1w", 604800)]
)
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["15", "1.5s", "2 m", "1h30m", ""])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        seconds(text)


def test_all_mistakes_are_named_at_once() -> None:
    messages = problems({"x": 1, "cluster": {"y": 2, "name": "Not A Label"}})
    assert len(messages) == 3


def test_a_password_is_never_in_the_message() -> None:
    with pytest.raises(settings.SettingsError) as error_info:
        settings.parse_settings({"grafana_password": ["hunter2"]})
    assert "hunter2" not in str(error_info.value)


def test_overrides_merge_into_the_lock() -> None:
    pinned = versions.lock(
        settings.parse_settings({"versions": {"kubernetes": {"version": "1.36.3"}}})
    )
    assert pinned.kubernetes.version == "1.36.3"
    assert pinned.kubernetes.pause == "3.10.2"


def test_the_driver_setting_overrides_the_lock() -> None:
    assert versions.lock(
        settings.parse_settings({"driver": {"version": "595.71.05"}})
    ).driver.version == ("595.71.05")
