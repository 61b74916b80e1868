"""Names and passwords for registries that let nobody pull without: for containerd and for Docker.

containerd's CRI plugin has no other place for what holds for all pulls of a node (the kubelet's,
crictl's and the sandbox image's): `registry.configs.*.auth` is called deprecated, and stays until
there is an alternative (containerd v2.4.2, docs/cri/registry.md; by RELEASES.md until 2.7).
"""

import base64
import json
from pathlib import PurePosixPath

from pydantic import SecretStr

from gpuboot.config import secret_files
from gpuboot.config.secret_files import SecretFile
from gpuboot.config.settings import Settings, SettingsError

CONTAINERD = "/etc/containerd/conf.d/gpuboot-registries.toml"
DOCKER = PurePosixPath("/etc/gpuboot/docker/config.json")
# what makes Docker's command line read it, where it is
DOCKER_ENVIRONMENT = f"if [ -e {DOCKER} ]; then export DOCKER_CONFIG={DOCKER.parent}; fi"
# the registry that people call docker.io: where it is asked, and what Docker's own file calls it
_HUB = ("docker.io", "registry-1.docker.io", "https://index.docker.io/v1/")


def files(settings: Settings) -> dict[str, SecretFile]:
    """The operator's files with passwords, by registry."""
    return {
        host: SecretFile(f"registries.{host}.password.file", login.password.file)
        for host, login in settings.registries.items()
    }


def containerd(settings: Settings) -> SecretStr | None:
    """containerd's drop-in; None without registries. Raises `SettingsError`."""
    tables = [
        f'[plugins."io.containerd.cri.v1.images".registry.configs.{_quoted(host)}.auth]\n'
        f"username = {_quoted(name)}\npassword = {_quoted(password)}\n"
        for host, (name, password) in _logins(settings, hub=_HUB[1]).items()
    ]
    # the lowest version of a file that has this plugin: a drop-in's may not be above the root's
    head = "# Written by gpuboot\nversion = 3\n"
    return SecretStr("\n".join([head, *tables])) if tables else None


def _quoted(text: str) -> str:
    """A string of TOML, which has JSON's escapes but for characters beyond 16 bits."""
    return json.dumps(text, ensure_ascii=False)


def docker(settings: Settings) -> SecretStr | None:
    """The configuration of Docker's command line; None without registries. As `containerd`."""
    auths = {
        host: {"auth": base64.b64encode(f"{name}:{password}".encode()).decode()}
        for host, (name, password) in _logins(settings, hub=_HUB[2]).items()
    }
    return SecretStr(json.dumps({"auths": auths}, indent=1) + "\n") if auths else None


def _logins(settings: Settings, hub: str) -> dict[str, tuple[str, str]]:
    contents, problems = secret_files.read(files(settings))
    if problems:
        raise SettingsError(problems)
    return {
        hub if host == _HUB[0] else host: (login.username, contents[host].get_secret_value())
        for host, login in settings.registries.items()
    }
