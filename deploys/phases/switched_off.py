"""Parts that a site has switched off are taken away, before others come in their place."""

from pyinfra.api.exceptions import DeployError
from pyinfra.context import host

from deploys.engine.operation import phase
from deploys.parts.cluster import object_operations as objects
from deploys.parts.cluster import secret_operations as secrets
from deploys.parts.storage import operations as storage
from deploys.parts.switched_off import operations as absent
from deploys.phases import dcgm_exporter, metrics
from deploys.run.context import Context, current
from gpuboot.cluster.local_path import STORAGE_CLASS, local_path
from gpuboot.monitoring import alerting
from gpuboot.monitoring import objects as stack
from gpuboot.monitoring.charts import log_values, remote_write
from gpuboot.monitoring.charts.monitoring_values import GRAFANA_SECRET, STACK, claim_names
from gpuboot.plan import KeptItem

DELETE_VOLUMES = "gpuboot_delete_volumes"
_DEFINITIONS = "with each go all objects of its kind, whoever made them"
_INSIDE = "others may have put something there"


@phase("Switched off")
def switched_off() -> None:
    """Take away the parts that the settings do not want, where gpuboot has installed them."""
    context = current()
    if not context.node.leader:
        return
    settings = context.settings
    delete_volumes = _delete_volumes(context)
    if settings.exporter.kind != "chart":
        absent.release(
            name="Remove the stand-alone dcgm-exporter",
            release=dcgm_exporter.RELEASE,
            namespace=dcgm_exporter.NAMESPACE,
            chart="dcgm-exporter",
        )
    if not settings.gpu_operator.enabled:
        _no_operator(context)
    _no_logs(context)
    metrics.absent(context)
    if not settings.monitoring.enabled:
        _no_monitoring(context, delete_volumes)
    if not (
        settings.monitoring.enabled and settings.monitoring.storage.provisioner == STORAGE_CLASS
    ):
        storage.provisioner_absent(
            name="Remove the local-path provisioner, unless volumes need it",
            manifest=local_path(settings, context.lock),
        )


def _no_logs(context: Context) -> None:
    """Take away what ships logs that nobody wants shipped any more."""
    settings, namespace = context.settings, context.settings.monitoring.namespace
    releases = log_values.releases(settings)
    for release in (name for name in (log_values.NODES, log_values.EVENTS) if name not in releases):
        absent.release(
            name=f"Remove {release}",
            release=release,
            namespace=namespace,
            chart=log_values.CHART,
        )
    if not releases:
        secrets.synced(
            name=f"Remove the Secret {log_values.SECRET}",
            namespace=namespace,
            secret=log_values.SECRET,
            contents={},
        )


def _delete_volumes(context: Context) -> bool:
    """Whether a person has given up the volumes of monitoring. Raises `DeployError`."""
    requested = host.data.get(DELETE_VOLUMES)
    if requested is None:
        return False
    if requested != "monitoring" or context.settings.monitoring.enabled:
        raise DeployError(
            f"--data {DELETE_VOLUMES}={requested}: only the volumes of monitoring can be deleted, "
            "and only while it is switched off\n"
            f"    remedy: set monitoring.enabled = False and give {DELETE_VOLUMES}=monitoring"
        )
    return True


def _no_operator(context: Context) -> None:
    namespace = context.settings.gpu_operator.namespace
    absent.release(
        name="Remove gpu-operator",
        release="gpu-operator",
        namespace=namespace,
        chart="gpu-operator",
        instances=["ClusterPolicy"],
        node_labels=True,
        retained=[
            KeptItem(
                what="pods that run on GPUs",
                why="the runtime nvidia is the host's; new ones wait until something offers "
                "nvidia.com/gpu",
            ),
            KeptItem(what="definitions of nvidia.com and nfd.k8s-sigs.io", why=_DEFINITIONS),
            KeptItem(what=f"namespace {namespace}", why=_INSIDE),
        ],
    )


def _no_monitoring(context: Context, delete_volumes: bool) -> None:
    settings = context.settings.monitoring
    namespace = settings.namespace
    objects.synced(
        name="Remove rules, dashboards and network policies",
        objects=[],
        namespaces=stack.namespaces(context.settings),
    )
    absent.release(
        name=f"Remove {STACK}",
        release=STACK,
        namespace=namespace,
        chart=STACK,
        instances=["Prometheus", "Alertmanager"],
        objects=[
            ("kube-system", "services,endpoints", f"{STACK}-kubelet"),
            ("kube-system", "endpointslices", f"-l kubernetes.io/service-name={STACK}-kubelet"),
            (namespace, "secrets", f"{STACK}-admission"),
        ],
        retained=_retained(namespace, delete_volumes),
        delete_claims=delete_volumes,
    )
    for secret in (alerting.SECRET, remote_write.SECRET):
        secrets.synced(
            name=f"Remove the Secret {secret}", namespace=namespace, secret=secret, contents={}
        )
    if delete_volumes:
        storage.claims_absent(
            name="Delete the volumes of monitoring",
            namespace=namespace,
            names=claim_names(),
            secrets=[GRAFANA_SECRET],
        )


def _retained(namespace: str, delete_volumes: bool) -> list[KeptItem]:
    volumes = KeptItem(
        what="volumes of Prometheus, Alertmanager and Grafana, and Grafana's password",
        why=f"used again when monitoring is switched on; --data {DELETE_VOLUMES}=monitoring "
        "deletes them",
    )
    return [
        *([] if delete_volumes else [volumes]),
        KeptItem(what="definitions of monitoring.coreos.com", why=_DEFINITIONS),
        KeptItem(what=f"namespace {namespace}", why=_INSIDE),
    ]
