"""Where charts are published, and where a site takes them from."""

from __future__ import annotations

from collections.abc import Mapping

from gpuboot.config.settings import Settings

PUBLISHERS = {
    "nvidia": "https://helm.ngc.nvidia.com/nvidia",
    "prometheus-community": "https://prometheus-community.github.io/helm-charts",
    "dcgm-exporter": "https://nvidia.github.io/dcgm-exporter/helm-charts",
    "fluent": "https://fluent.github.io/helm-charts",
}


def used(settings: Settings) -> list[str]:
    """The charts that a cluster gets, by their names in the version lock."""
    needed = {
        "gpu-operator": settings.gpu_operator.enabled,
        "dcgm-exporter": settings.exporter.kind == "chart",
        "kube-prometheus-stack": settings.monitoring.enabled,
        "fluent-bit": settings.logs.enabled,
    }
    return [chart for chart, is_enabled in needed.items() if is_enabled]


def repository(name: str, settings: Settings) -> str:
    """Base URL of a chart repository: the site's mirror, or its publisher.

    + name: `repository` of a chart in the version lock

    Raises ValueError for a repository nobody publishes.
    """
    mirrors: Mapping[str, str] = {str(key): url for key, url in settings.mirrors.charts.items()}
    try:
        return mirrors.get(name) or PUBLISHERS[name]
    except KeyError:
        known_names = ", ".join(sorted(PUBLISHERS))
        raise ValueError(f"unknown chart repository {name}; known are {known_names}") from None
