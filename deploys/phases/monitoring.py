"""Prometheus, Alertmanager and Grafana: kube-prometheus-stack, with our rules and dashboards."""

from pyinfra.api.operation import OperationMeta

from deploys.engine.operation import phase
from deploys.parts.cluster import (
    object_operations as objects,
)
from deploys.parts.cluster import (
    operations as kubectl,
)
from deploys.parts.cluster import (
    secret_operations as secrets,
)
from deploys.parts.monitoring import operations as rules
from deploys.parts.rollout import operations as rollout
from deploys.parts.storage import operations as storage
from deploys.phases import kubernetes
from deploys.phases.helm import deploy_release, early_resources, fetch_chart
from deploys.run.context import Context, current
from gpuboot.cluster.helm_releases import ROLLOUT_S, rollout_part
from gpuboot.cluster.readiness import Part
from gpuboot.monitoring import alerting
from gpuboot.monitoring import objects as stack
from gpuboot.monitoring.charts import remote_write
from gpuboot.monitoring.charts.monitoring_values import (
    GRAFANA_SECRET,
    STACK,
    monitoring_values,
    monitoring_workloads,
)
from gpuboot.monitoring.network_policies import exporter_namespace
from gpuboot.monitoring.rules import digest, groups

# what the charts of exporters make where the cluster knows it
_SCRAPED = ["servicemonitors.monitoring.coreos.com", "prometheusrules.monitoring.coreos.com"]
# node-exporter: the host's network; the GPU exporter: the host's devices
_PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}


@phase("Custom resources")
def custom_resources() -> None:
    """Have the cluster know ServiceMonitors before charts are installed that make some."""
    context = current()
    settings = context.settings.monitoring
    if context.node.leader and settings.enabled:
        fetch_chart(STACK)
        early_resources(STACK, STACK, settings.namespace, only=_SCRAPED)


@phase("Monitoring")
def monitoring() -> None:
    """Install kube-prometheus-stack, and our rules and dashboards once its operator runs."""
    context = current()
    settings = context.settings.monitoring
    if not (context.node.leader and settings.enabled):
        return
    kubectl.namespace(name="Create the namespace", namespace=settings.namespace, labels=_PRIVILEGED)
    _secrets(context)
    if settings.storage.persistent:
        storage.class_required(
            name="Check the StorageClass", class_name=settings.storage.class_name
        )
    rollout.complete(
        # the chart's install runs a Job; Helm would not tell why it does not start
        name="Wait until a node can run pods",
        parts=[kubernetes.workload_node(context)],
    )
    deploy_release(
        STACK,
        STACK,
        settings.namespace,
        monitoring_values(context.settings),
    )
    applied = _objects(context)
    if applied.will_change:
        rules.reloaded(
            name="Reload Prometheus rules",
            namespace=settings.namespace,
            prometheus=f"{STACK}-prometheus",
            digest=digest(groups(context.settings, context.nodes)),
            # a plan may have counted on more than was found to change
            _if=applied.did_change,
        )


def rollout_parts(context: Context) -> list[Part]:
    """The workloads of the monitoring stack, those that its operator makes included."""
    settings = context.settings.monitoring
    if not settings.enabled:
        return []
    required = monitoring_workloads(context.settings)
    return [rollout_part(settings.namespace, required)]


def _objects(context: Context) -> OperationMeta:
    """Rules, dashboards and network policies. Returns whether any of them changes."""
    settings = context.settings.monitoring
    if settings.network_policies:
        kubectl.namespace(
            name="Create the exporter's namespace",
            namespace=exporter_namespace(context.settings),
            labels=_PRIVILEGED,
        )
    return objects.synced(
        name="Apply rules, dashboards and network policies",
        objects=stack.objects(context.settings, context.nodes),
        namespaces=stack.namespaces(context.settings),
        after=f"{settings.namespace}/{STACK}-operator",
        timeout_s=ROLLOUT_S,
        pod_network=settings.network_policies,
    )


def _secrets(context: Context) -> None:
    """What the chart's values name and never hold."""
    settings, namespace = context.settings, context.settings.monitoring.namespace
    if settings.monitoring.grafana:
        secrets.admin_login(
            name="Store Grafana's admin password in a Secret",
            namespace=namespace,
            secret=GRAFANA_SECRET,
            password=settings.grafana_password,
        )
    needed = remote_write.existing(settings)
    for name, keys in alerting.site_secrets(settings).items():
        needed[name] = [*needed.get(name, []), *keys]
    secrets.required(
        name="Check the Secrets that settings name", namespace=namespace, needed=needed
    )
    # Alertmanager reads these files whenever it sends: a new content takes effect by itself.
    secrets.synced(
        name="Store the receivers' credentials in a Secret",
        namespace=namespace,
        secret=alerting.SECRET,
        contents=alerting.secrets(settings),
    )
    secrets.synced(
        name="Store the remote stores' credentials in a Secret",
        namespace=namespace,
        secret=remote_write.SECRET,
        contents=remote_write.contents(settings),
    )
