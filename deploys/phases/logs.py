"""Logs of pods, XIDs and Events, sent to Loki by Fluent Bit."""

from deploys.engine.operation import phase
from deploys.parts.cluster import operations as kubectl
from deploys.parts.cluster import secret_operations as secrets
from deploys.phases.helm import deploy_release, fetch_chart
from deploys.run.context import Context, current
from gpuboot.cluster.helm_releases import rollout_part
from gpuboot.cluster.readiness import Part
from gpuboot.monitoring.charts import log_values as chart

# it reads folders of the host
_PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}


@phase("Logs")
def logs() -> None:
    """Install Fluent Bit where `logs.enabled` asks for it; else do nothing.

    Credentials are in a Secret alone; a pod reads them when it starts.
    """
    context = current()
    releases = chart.releases(context.settings)
    if not (context.node.leader and releases):
        return
    namespace = context.settings.monitoring.namespace
    kubectl.namespace(name="Create the namespace", namespace=namespace, labels=_PRIVILEGED)
    secrets.required(
        name="Check the Secrets that logs.loki names",
        namespace=namespace,
        needed=chart.existing(context.settings),
    )
    secrets.synced(
        name="Store Loki's credentials in a Secret",
        namespace=namespace,
        secret=chart.SECRET,
        contents=chart.contents(context.settings),
    )
    fetch_chart(chart.CHART)
    for release, values in releases.items():
        deploy_release(chart.CHART, release, namespace, values)


def rollout_parts(context: Context) -> list[Part]:
    """Fluent Bit on every node, and the pod that watches Events."""
    settings = context.settings
    releases = chart.releases(settings)
    if not releases:
        return []
    return [rollout_part(settings.monitoring.namespace, list(releases))]
