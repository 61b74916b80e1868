"""Settings and version lock of a run, with every mistake in both of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboot import telemetry
from gpuboot.cluster import team_objects
from gpuboot.config import versions
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings, SettingsError, kubelet, parse_settings, valid_parts
from gpuboot.config.versions import Lock
from gpuboot.hosts import sharing_checks
from gpuboot.monitoring import rules
from gpuboot.monitoring.charts import decided


def load(data: Mapping[str, Any], docker_hosts: bool = False) -> tuple[Settings, Lock]:
    """The settings, and the version lock that holds for them.

    + data: the `gpuboot` dict of the inventory's group data
    + docker_hosts: they are for Docker hosts, not for a cluster

    Raises `SettingsError` with one problem per mistake: in a setting itself, in what it names
    (alerts, metrics, kubelet fields), and in versions that do not go together.
    """
    problems: list[Problem] = []
    try:
        settings = parse_settings(data)
    except SettingsError as error:
        problems += error.problems
        settings = valid_parts(data)
    problems += rules.validate(settings)
    problems += sharing_checks.of_settings(settings, docker_hosts)
    problems += team_objects.problems(settings)
    problems += telemetry.problems(settings.exporter)
    try:
        lock = versions.lock(settings)
    except SettingsError as error:
        raise SettingsError([*problems, *error.problems]) from None
    if not docker_hosts:
        problems += decided.problems(settings, lock)
    problems += kubelet.problems(settings.cluster.kubelet, lock.kubernetes.minor)
    if problems:
        raise SettingsError(problems)
    return settings, lock
