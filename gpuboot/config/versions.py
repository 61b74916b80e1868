"""The version lock, and which versions go together.

`versions.toml` names what is installed by default; a site overrides keys of the same layout by
`settings.versions` and `settings.driver.version`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from gpuboot.config import exporter_versions, first_digests, support
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Model, Settings, SettingsError, messages
from gpuboot.config.settings.base import Form
from gpuboot.config.tables import read_table
from gpuboot.config.version_numbers import parse as parse

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
    """A locked Helm chart: `repository` is a key of `settings.mirrors.charts`."""

    repository: str
    version: Version
    sha256: str


class Images(Model):
    """Tags of images, or `tag@sha256:…`."""

    dcgm_exporter: str
    local_path_provisioner: str
    busybox: str
    metrics_server: str
    kubelet_csr_approver: str
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
    base = read_table("config/versions.toml")
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
    digests = first_digests.pinned(result.model_dump(), settings.cluster.name)
    return Lock.model_validate(digests)


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
    minor, image = parse(lock.kubernetes.version)[1], lock.images.dcgm_exporter
    return [
        *_wrong_minor(lock, minor),
        *_dropped_by_operator(lock, minor),
        *_too_old_for_others(lock, minor),
        *exporter_versions.old(image),
        *(exporter_versions.engine_problems(image, lock.dcgm.version) if dcgm_on_hosts else ()),
    ]


def warnings(lock: Lock, settings: Settings, docker_hosts: bool = False) -> list[str]:
    """What nobody upstream has tried or recommends, and whose support ends, a line each.

    + docker_hosts: they have no Kubernetes
    """
    keys = {
        "driver.version": lock.driver.version,
        "containerd.version": lock.containerd.version,
        "kubernetes.version": lock.kubernetes.version,
    }
    ends = (
        line
        for key in keys.keys() - unused(settings, docker_hosts)
        for line in support.end_warnings(key, keys[key])
    )
    return [*([] if docker_hosts else untried(lock)), *sorted(ends)]


def unused(settings: Settings, docker_hosts: bool) -> set[str]:
    """Keys of the lock whose version a run does not install, of those whose support ends.

    + docker_hosts: they have no Kubernetes
    """
    keys = set() if settings.driver.enabled else {"driver.version"}
    return keys | ({"kubernetes.version"} if docker_hosts else set())


def untried(lock: Lock) -> list[str]:
    """Versions of this lock that upstream does not name together, a line each."""
    minor = parse(lock.kubernetes.version)[1]
    return [*_unknown_to_operator(lock, minor), *_old_containerd(lock, minor)]


def _wrong_minor(lock: Lock, minor: int) -> Iterator[Problem]:
    if lock.kubernetes.minor != f"1.{minor}":
        yield Problem(
            "",
            f"versions.kubernetes.minor is {lock.kubernetes.minor}, but version is "
            f"{lock.kubernetes.version}",
            f'set minor = "1.{minor}"',
        )


def _operator_range(lock: Lock) -> tuple[str, range | None]:
    """gpu-operator's release, and the Kubernetes minors it is validated on; None: not known."""
    operator = lock.charts["gpu-operator"].version.lstrip("v")
    row = support.table("operator_kubernetes").rows.get(support.branch(operator, 2))
    return operator, range(parse(row[0])[1], parse(row[1])[1] + 1) if row else None


def _dropped_by_operator(lock: Lock, minor: int) -> Iterator[Problem]:
    operator, validated = _operator_range(lock)
    if validated is not None and minor < validated.start:
        yield Problem(
            "",
            f"gpu-operator {operator} supports Kubernetes 1.{validated.start} to "
            f"1.{validated.stop - 1}, not {lock.kubernetes.version} "
            f"({support.table('operator_kubernetes').age()})",
            "choose a Kubernetes version in that range, or another gpu-operator",
        )


def _unknown_to_operator(lock: Lock, minor: int) -> Iterator[str]:
    operator, validated = _operator_range(lock)
    source = support.table("operator_kubernetes")
    if validated is None:
        yield f"{source.unknown(f'gpu-operator {operator}')}; remedy: look there"
    elif minor >= validated.stop:
        yield (
            f"gpu-operator {operator} supports Kubernetes 1.{validated.start} to "
            f"1.{validated.stop - 1} by the table of {source.source} ({source.age()}), which does "
            f"not know {lock.kubernetes.version}; remedy: look there"
        )


def _too_old_for_others(lock: Lock, minor: int) -> Iterator[Problem]:
    installed = {name: chart.version for name, chart in lock.charts.items()}
    installed["flannel"] = lock.flannel.version
    source = support.table("lowest_kubernetes")
    for name, rows in source.rows.items():
        version = installed.get(name, "").lstrip("v")
        lowest = next((rows[start] for start in rows if version.startswith(start)), None)
        if lowest is not None and minor < parse(lowest)[1]:
            yield Problem(
                "",
                f"{name} {version} needs Kubernetes {lowest} or newer, not "
                f"{lock.kubernetes.version} ({source.age()})",
                f"choose a newer Kubernetes, or an earlier {name}",
            )


def _old_containerd(lock: Lock, minor: int) -> Iterator[str]:
    source = support.table("kubernetes_containerd")
    recommended = source.rows.get(f"1.{minor}")
    if recommended is None:
        yield f"{source.unknown(f'Kubernetes 1.{minor}')}; remedy: look there"
    elif parse(lock.containerd.version)[:2] < parse(recommended):
        yield (
            f"{source.source} ({source.age()}) recommends containerd {recommended} or newer for "
            f"Kubernetes 1.{minor}, not {lock.containerd.version}; remedy: choose a newer "
            "containerd (2.3 is the long-term release)"
        )


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = (
            _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        )
    return merged
