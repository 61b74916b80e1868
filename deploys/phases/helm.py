"""Helm on the leader, and how the chart phases use it."""

from collections.abc import Sequence
from typing import Any

from deploys.engine.operation import phase
from deploys.parts.helm import download_operations as downloads
from deploys.parts.helm import operations as operations
from deploys.run.context import current
from gpuboot.hosts import platforms
from gpuboot.hosts.downloads import environment, helm_url
from gpuboot.monitoring.charts.chart_repositories import repository


@phase("Helm")
def helm() -> None:
    """Install Helm on the leader, where all charts are installed from."""
    context = current()
    if not context.node.leader:
        return
    settings, lock = context.settings, context.lock.helm
    architecture = platforms.ARCHITECTURES[context.state.arch][0]
    downloads.installed(
        name=f"Install Helm {lock.version}",
        version=lock.version,
        url=helm_url(settings, lock.version, architecture),
        architecture=architecture,
        sha256=lock.sha256.get(architecture, ""),
        environment=environment(settings, mirrored=settings.mirrors.helm is not None),
        cluster=settings.cluster.name,
    )


def deploy_chart(
    chart: str, release: str, namespace: str, values: dict[str, Any], retained: Sequence[str] = ()
) -> None:
    """Bring a release of one of the lock's charts to these values; call it on the leader.

    + retained: path in the values at which entries of the live release stay beside these
    """
    fetch_chart(chart)
    deploy_release(chart, release, namespace, values, retained)


def fetch_chart(chart: str) -> None:
    """Have one of the lock's charts on the leader."""
    context = current()
    settings, locked = context.settings, context.lock.charts[chart]
    downloads.chart(
        name=f"Download chart {chart} {locked.version}",
        chart=chart,
        version=locked.version,
        repository=repository(locked.repository, settings),
        sha256=locked.sha256,
        environment=environment(settings, mirrored=locked.repository in settings.mirrors.charts),
        cluster=settings.cluster.name,
    )


def early_resources(chart: str, release: str, namespace: str, only: Sequence[str]) -> None:
    """Have the cluster know custom resources of a chart before its release is there.

    Call it after `fetch_chart`. + only: names of their definitions
    """
    operations.custom_resources(
        name=f"Apply the first custom resources of {chart}",
        only=only,
        **_release(chart, release, namespace),
    )


def deploy_release(
    chart: str, release: str, namespace: str, values: dict[str, Any], retained: Sequence[str] = ()
) -> None:
    """Bring a release to these values, see `deploy_chart`, after `fetch_chart`."""
    which = _release(chart, release, namespace)
    operations.custom_resources(name=f"Renew the custom resources of {chart}", **which)
    operations.release(
        name=f"Deploy {release} ({chart} {which['version']})",
        values=values,
        retained=retained,
        **which,
    )


def _release(chart: str, release: str, namespace: str) -> dict[str, Any]:
    """The arguments of operations on a release of one of the lock's charts."""
    version = current().lock.charts[chart].version
    return {"release": release, "chart": chart, "version": version, "namespace": namespace}
