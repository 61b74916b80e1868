"""Passwords of registries: in the words of containerd and of Docker, and nowhere else.

containerd v2.4.2: internal/cri/config/config.go (RegistryConfig), internal/cri/server/images/
image_pull.go (credentials by the host that is asked), docs/cri/registry.md.
"""

import base64
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config.settings import Settings, SettingsError, parse_settings
from gpuboot.hosts import registries
from gpuboot.site import local_files

WORD = 'p"w\\d$ é🔑'


@pytest.fixture
def site(tmp_path: Path) -> Settings:
    (tmp_path / "password").write_text(f"{WORD}\n")
    (tmp_path / "password").chmod(0o600)
    login = {"username": "puller", "password": {"file": str(tmp_path / "password")}}
    return parse_settings({"registries": {"mirror.example:5000": login, "docker.io": login}})


def test_containerds_drop_in_merges_into_its_images_plugin(site: Settings) -> None:
    drop_in = registries.containerd(site)
    assert drop_in is not None
    text = drop_in.get_secret_value()
    config = tomllib.loads(text)
    assert config["version"] == 3
    auth = {"username": "puller", "password": WORD}
    assert config["plugins"]["io.containerd.cri.v1.images"]["registry"]["configs"] == {
        "mirror.example:5000": {"auth": auth},
        "registry-1.docker.io": {"auth": auth},  # the host that is asked for docker.io
    }
    assert text.endswith("\n")


def test_dockers_command_line(site: Settings) -> None:
    configuration = registries.docker(site)
    assert configuration is not None
    config = json.loads(configuration.get_secret_value())
    assert set(config["auths"]) == {"mirror.example:5000", "https://index.docker.io/v1/"}
    encoded = config["auths"]["mirror.example:5000"]["auth"]
    assert base64.b64decode(encoded).decode() == f"puller:{WORD}"


def test_it_hides_itself(site: Settings) -> None:
    for configuration in (registries.containerd(site), registries.docker(site)):
        assert "puller" not in repr(configuration)


def test_without_registries_there_is_nothing() -> None:
    assert registries.containerd(parse_settings({})) is None
    assert registries.docker(parse_settings({})) is None


def test_a_password_that_is_not_there_is_told_before_anything_is_changed(tmp_path: Path) -> None:
    login = {"username": "u", "password": {"file": str(tmp_path / "gone")}}
    settings = parse_settings({"registries": {"m.example": login}})
    (problem,) = local_files.problems(settings)
    assert "registries.m.example.password.file" in problem.cause
    with pytest.raises(SettingsError):
        registries.containerd(settings)


@pytest.mark.parametrize(
    ("registry", "message"),
    [
        ({"https://m.example": {"username": "u", "password": {"file": "f"}}}, "host or host:port"),
        ({"m.example": {"username": "u", "password": "very-secret"}}, "takes a dict"),
        ({"m.example": {"username": "u"}}, "password: is required"),
    ],
)
def test_wrong_registries(registry: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as error:
        parse_settings({"registries": registry})
    assert "very-secret" not in str(error.value)
