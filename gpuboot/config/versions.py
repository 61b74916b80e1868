"""The version lock, and which versions go together.

`versions.toml` names what is installed by default; a site overrides keys of the same layout by
`settings.versions` and `settings.driver.version`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Annotated, Any

from pydantic import Field, ValidationError

from gpuboot.config.problems import Problem
from gpuboot.config.settings import Model, Settings, SettingsError, messages
from gpuboot.config.settings.base import Form

# gpu-operator release -> Kubernetes minors that NVIDIA supports it on
# (docs.nvidia.com, gpu-operator "Platform Support")
OPERATOR_KUBERNETES = {"26.7": range(33, 37), "26.3": range(32, 37), "25.10": range(30, 35)}
# Kubernetes minor -> lowest containerd (containerd's RELEASES.md)
KUBERNETES_CONTAINERD = {33: (1, 7), 34: (1, 7), 35: (2, 1), 36: (2, 2), 37: (2, 2)}
# chart or program, beginning of its versions -> the lowest Kubernetes minor: the charts'
# `kubeVersion` (Chart.yaml), flannel's README ("For Kubernetes v1.17+")
LOWEST_KUBERNETES = {
    ("gpu-operator", "26."): 16,
    ("kube-prometheus-stack", "8"): 25,
    ("flannel", "0.28."): 17,
}
# The first exporter whose XID counter can be told from a window; older ones end at their start
# with the field in their collectors file.
LOWEST_EXPORTER = (4, 8, 3)
_DCGM_MAJOR = 4


Version = Annotated[str, Form(r"v?\d+(\.\d+)+([-+~][A-Za-z0-9.+~-]+)?", "a version", "1.36.6", 100)]


class DriverLock(Model):
    version: Version
    last_legacy: Version


class PackageLock(Model):
    version: Version


class DockerLock(Model):
    version: Version
    compose: Version


class KubernetesLock(Model):
    version: Version
    minor: Version
    cri_tools: Version
    cni: Version
    pause: Version


class FlannelLock(Model):
    version: Version
    cni_plugin: Version


class HelmLock(Model):
    version: Version
    sha256: dict[str, str]


class ChartLock(Model):
    """One Helm chart: `repository` is a key of `settings.mirrors.charts`."""

    repository: str
    version: Version
    sha256: str


class Images(Model):
    """Tags of images, or `tag@sha256:…`."""

    dcgm_exporter: str
    local_path_provisioner: str
    busybox: str
    prometheus: str
    alertmanager: str
    node_exporter: str
    grafana: str


class Lock(Model):
    """Every version this run installs, with the digests of what is downloaded as a file."""

    driver: DriverLock
    dcgm: PackageLock
    toolkit: PackageLock
    containerd: PackageLock
    docker: DockerLock
    kubernetes: KubernetesLock
    flannel: FlannelLock
    helm: HelmLock
    charts: dict[str, ChartLock] = Field(min_length=1)
    images: Images


def lock(settings: Settings) -> Lock:
    """The lock that holds for these settings.

    Raises `SettingsError` for unknown keys and for versions that do not go together.
    """
    base = tomllib.loads(resources.files("gpuboot.config").joinpath("versions.toml").read_text())
    merged = _merge(base, settings.versions)
    merged = _minor_of_version(merged, settings.versions.get("kubernetes"))
    if settings.driver.version:
        merged = _merge(merged, {"driver": {"version": settings.driver.version}})
    try:
        result = Lock.model_validate(merged)
    except ValidationError as error:
        raise SettingsError(messages.problems(error, Lock, "versions.")) from None
    if problems := mismatches(result, dcgm_on_hosts=settings.dcgm == "host"):
        raise SettingsError(problems)
    return result


def _minor_of_version(merged: dict[str, Any], site_versions: Any) -> dict[str, Any]:
    """The minor release follows from the version where a site names only that.

    + site_versions: what the settings have of `versions.kubernetes`
    """
    if not isinstance(site_versions, Mapping) or "minor" in site_versions:
        return merged
    match = re.match(r"v?(\d+\.\d+)\.", str(site_versions.get("version", "")))
    return _merge(merged, {"kubernetes": {"minor": match[1]}}) if match else merged


def mismatches(lock: Lock, dcgm_on_hosts: bool = False) -> list[Problem]:
    """What upstream says does not work together in this lock; empty when all is well.

    + dcgm_on_hosts: `versions.dcgm` is used
    """
    minor = parse(lock.kubernetes.version)[1]
    return [
        *_wrong_minor(lock, minor),
        *_unsupported_by_operator(lock, minor),
        *_too_old_for_others(lock, minor),
        *_old_containerd(lock, minor),
        *_old_exporter(lock),
        *(_newer_engine(lock) if dcgm_on_hosts else ()),
    ]


def _wrong_minor(lock: Lock, minor: int) -> Iterator[Problem]:
    if lock.kubernetes.minor != f"1.{minor}":
        yield Problem(
            "",
            f"versions.kubernetes.minor is {lock.kubernetes.minor}, but version is "
            f"{lock.kubernetes.version}",
            f'set minor = "1.{minor}"',
        )


def _unsupported_by_operator(lock: Lock, minor: int) -> Iterator[Problem]:
    operator = lock.charts["gpu-operator"].version.lstrip("v")
    supported = OPERATOR_KUBERNETES.get(operator.rpartition(".")[0])
    if supported is not None and minor not in supported:
        yield Problem(
            "",
            f"gpu-operator {operator} supports Kubernetes 1.{supported.start} to "
            f"1.{supported.stop - 1}, not {lock.kubernetes.version}",
            "choose a Kubernetes version in that range, or another gpu-operator",
        )


def _too_old_for_others(lock: Lock, minor: int) -> Iterator[Problem]:
    installed = {name: chart.version for name, chart in lock.charts.items()}
    installed["flannel"] = lock.flannel.version
    for (name, beginning), lowest in LOWEST_KUBERNETES.items():
        version = installed.get(name, "").lstrip("v")
        if version.startswith(beginning) and minor < lowest:
            yield Problem(
                "",
                f"{name} {version} needs Kubernetes 1.{lowest} or newer, not "
                f"{lock.kubernetes.version}",
                f"choose a newer Kubernetes, or an earlier {name}",
            )


def _old_containerd(lock: Lock, minor: int) -> Iterator[Problem]:
    lowest = KUBERNETES_CONTAINERD.get(minor, (2, 2))
    if parse(lock.containerd.version)[:2] < lowest:
        yield Problem(
            "",
            f"Kubernetes 1.{minor} needs containerd {lowest[0]}.{lowest[1]} or newer, "
            f"not {lock.containerd.version}",
            "choose a newer containerd (2.3 is the long-term release)",
        )


def _old_exporter(lock: Lock) -> Iterator[Problem]:
    exporter = re.match(r"\d+\.\d+\.\d+-(\d+\.\d+\.\d+)", lock.images.dcgm_exporter)
    if exporter is not None and parse(exporter[1]) < LOWEST_EXPORTER:
        yield Problem(
            "",
            f"versions.images.dcgm_exporter is exporter {exporter[1]}, which lacks "
            "DCGM_EXP_XID_ERRORS_TOTAL",
            "use 4.8.3 or newer: our collectors file and the XID alerts need that counter",
        )


def _newer_engine(lock: Lock) -> Iterator[Problem]:
    """The exporter's libdcgm may be newer than the engine that it reads, never older.

    NVIDIA's GPU telemetry guide, "Connecting to an Existing DCGM Agent". Packages of DCGM 3 have
    other names.
    """
    engine = lock.dcgm.version
    exporter = re.match(r"(\d+\.\d+\.\d+)-\d+\.\d+\.\d+", lock.images.dcgm_exporter)
    if parse(engine)[0] != _DCGM_MAJOR:
        yield Problem(
            "",
            f"versions.dcgm.version is {engine}, and gpuboot installs DCGM {_DCGM_MAJOR} alone",
            "leave versions.dcgm out, or name a version of DCGM 4",
        )
    elif exporter is not None and parse(exporter[1]) < parse(engine):
        yield Problem(
            "",
            f"versions.dcgm.version is {engine}, newer than the DCGM {exporter[1]} in the exporter "
            f"{lock.images.dcgm_exporter}: an exporter may not be older than the engine it reads",
            f"use DCGM {exporter[1]} or older on the hosts, or a newer exporter",
        )


def parse(version: str) -> tuple[int, ...]:
    """The numbers of a version: `v1.36.6-1.1` gives (1, 36, 6). Raises ValueError without any."""
    head = version.lstrip("v").split("-")[0].split("+")[0].split("~")[0]
    return tuple(int(part) for part in head.split("."))


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = (
            _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        )
    return merged
