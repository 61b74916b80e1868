"""What the configured repositories serve now. Run by `gpuboot outdated`; it changes nothing.

$GPUBOOT_ANSWER names the file that gets the answers: a line from the leader, and one from a GPU
node where the leader has no GPUs, since NVIDIA's repositories are configured there.
"""

import os

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from deploys.parts.outdated import operations as operations
from deploys.run.context import begin, cluster_leader
from gpuboot.config.outdated import PACKAGES, next_minor
from gpuboot.hosts.downloads import environment
from gpuboot.monitoring.charts.chart_repositories import repository, used


@deploy("Outdated")
def outdated() -> None:
    """Ask on the leader, and on one GPU node."""
    settings, lock, nodes = begin()
    leader = cluster_leader(nodes)
    with_gpus = [leader, *(node for node in nodes if node.gpus)]
    queried_hosts = {leader.host, next((node.host for node in with_gpus if node.gpus), leader.host)}
    if host.name not in queried_hosts:
        return
    mirrored = any(chart.repository in settings.mirrors.charts for chart in lock.charts.values())
    charts = {
        name: repository(lock_chart.repository, settings)
        for name, lock_chart in lock.charts.items()
        if lock_chart.repository in used(settings)
    }
    operations.answered(
        name="Ask the repositories",
        packages=sorted({name for names in PACKAGES.values() for name in names}),
        minor=next_minor(lock),
        charts=charts if host.name == leader.host else {},
        environment=environment(settings, mirrored),
        lock=lock.model_dump(mode="json"),
        cluster=settings.cluster.name,
        path=os.environ["GPUBOOT_ANSWER"],
    )


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    outdated()
