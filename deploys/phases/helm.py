"""Helm on the leader, and how the chart phases use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deploys.lib.operation import phase
from deploys.operations import helm as operations
from deploys.run.context import current
from gpuboot.charts import repository
from gpuboot.hosts import platforms
from gpuboot.hosts.downloads import environment, helm_url


@phase("Helm")
def helm() -> None:
    """Install Helm on the leader, where all charts are installed from."""
    context = current()
    if not context.node.leader:
        return
    settings, lock = context.settings, context.lock.helm
    architecture = platforms.ARCHITECTURES[context.state.arch][0]
    operations.installed(
        name=f"Install Helm {lock.version}",
        version=lock.version,
        url=helm_url(settings, lock.version, architecture),
        sha256=lock.sha256.get(architecture, ""),
        environment=environment(settings, mirrored=settings.mirrors.helm is not None),
    )


def deploy_chart(chart: str, release: str, namespace: str, values: dict[str, Any]) -> None:
    """Bring a release of one of the lock's charts to these values; call it on the leader."""
    fetch_chart(chart, release, namespace)
    deploy_release(chart, release, namespace, values)


def fetch_chart(chart: str, release: str, namespace: str, first: Sequence[str] = ()) -> None:
    """Have one of the lock's charts on the leader, and its custom resources in the cluster.

    + first: those of its custom resources that are needed before its release is installed
    """
    context = current()
    settings, locked = context.settings, context.lock.charts[chart]
    operations.chart(
        name=f"Download chart {chart} {locked.version}",
        chart=chart,
        version=locked.version,
        repository=repository(locked.repository, settings),
        sha256=locked.sha256,
        environment=environment(settings, mirrored=locked.repository in settings.mirrors.charts),
    )
    operations.custom_resources(
        name=f"Renew the custom resources of {chart}",
        release=release,
        chart=chart,
        version=locked.version,
        namespace=namespace,
        first=first,
    )


def deploy_release(chart: str, release: str, namespace: str, values: dict[str, Any]) -> None:
    """As `deploy_chart`, after `fetch_chart`."""
    locked = current().lock.charts[chart]
    operations.release(
        name=f"Deploy {release} ({chart} {locked.version})",
        release=release,
        chart=chart,
        version=locked.version,
        namespace=namespace,
        values=values,
    )
