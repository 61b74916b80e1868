"""Alertmanager: receivers, routes and inhibitions from settings."""

from __future__ import annotations

from gpuboot.settings import Settings
from gpuboot.values import Values


def alertmanager_values(settings: Settings) -> Values:
    """The chart's values below `alertmanager`: its configuration and the Secrets it mounts."""
    return {}
