"""metrics-server and the approver of kubelets' certificates. All of it runs on the leader."""

from __future__ import annotations

import yaml
from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.cluster import operations as kubectl
from deploys.parts.cluster.fact import Cluster
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from gpuboot.cluster import metrics
from gpuboot.cluster.manifests import YAML_LOADER
from gpuboot.plan import Change, Decision
from gpuboot.plan.workloads import label

_REASON = "gpuboot did not install it, and installs none beside it"


@operation()
def server_applied(manifest: str) -> Commands:
    """Ensure that metrics-server is as in the manifest, where nothing else serves its API."""
    kubectl.foresee_applied(manifest)
    service = metrics.foreign_server(read(Cluster, kubeconfig=ADMIN_CONF))
    if service:
        subject = f"Service {service} serves {metrics.API_SERVICE} (kubectl top, HPAs)"
        changes.respect(Decision(what=subject, why=_REASON))
        host.noop(f"{subject}: {_REASON}")
        return
    yield from kubectl.applied._inner(manifest, metrics.SERVER)


@operation()
def approver_applied(manifest: str) -> Commands:
    """Ensure that the approver is as in the manifest, where nobody else has installed one."""
    kubectl.foresee_applied(manifest)
    if metrics.is_foreign(read(Cluster, kubeconfig=ADMIN_CONF), metrics.APPROVER):
        subject = (
            f"Deployment {metrics.NAMESPACE}/{metrics.APPROVER} approves kubelets' certificates"
        )
        changes.respect(Decision(what=subject, why=_REASON))
        host.noop(f"{subject}: {_REASON}")
        return
    yield from kubectl.applied._inner(manifest, metrics.APPROVER)


@operation()
def absent(manifest: str, workload: str) -> Commands:
    """Ensure that what gpuboot has applied is gone.

    + manifest: what has been applied; + workload: name of its Deployment
    """
    if not metrics.is_applied(read(Cluster, kubeconfig=ADMIN_CONF), workload):
        host.noop(f"gpuboot has no {workload} here")
        return
    # the last tells the next run what is left
    objects = sorted(
        (item for item in yaml.load_all(manifest, Loader=YAML_LOADER) if item),
        key=lambda item: item["kind"] == "Deployment",
    )
    for item in objects:
        changes.record(Change(subject=label(item), old="there"))
    text = yaml.safe_dump_all(objects, sort_keys=False)
    yield StringCommand(KUBECTL, "delete --ignore-not-found -f - >/dev/null", _stdin=text)
