"""StorageClasses, volume claims, and what makes volumes. All of it runs on the leader."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import changes, remote
from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing, fail, inform
from deploys.engine.operation import operation
from deploys.engine.waiting import wait_or_fail
from deploys.parts.cluster import operations as kubectl
from deploys.parts.cluster.fact import Cluster, PodIssues
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from deploys.parts.cluster.objects_fact import Stored
from gpuboot.cluster import local_path, volumes
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.workloads import find_workload
from gpuboot.hosts.fact_output import answer, framed
from gpuboot.plan import Change

_TIMEOUT_S = 600


@operation()
def default_class() -> Commands:
    """Ensure that local-path is the default StorageClass exactly where there is no other."""
    change = local_path.default_change(read(Cluster, kubeconfig=ADMIN_CONF).classes)
    if change is None:
        host.noop("the default StorageClass is set")
        return
    default = change.endswith("=true")
    subject = f"StorageClass {local_path.STORAGE_CLASS}"
    changes.record(Change(subject=subject, field="default", old=not default, new=default))
    yield StringCommand(
        KUBECTL, "annotate --overwrite storageclass", local_path.STORAGE_CLASS, QuoteString(change)
    )


@operation()
def class_required(class_name: str | None = None) -> Commands:
    """Make sure that volumes can be made; changes nothing.

    + class_name: the StorageClass that claims will name; None: the cluster's default one
    """
    if not executing():
        host.noop("StorageClasses are looked at when the run gets there")
        return
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    if state.error:
        yield fail(f"the API server does not answer: {state.error}", "run again")
        return
    if missing := local_path.missing_class(state.classes, class_name):
        yield fail(*missing)
        return
    host.noop(f"volumes can be provisioned ({class_name or 'by the default StorageClass'})")


@operation()
def claims_absent(namespace: str, names: Sequence[str], secrets: Sequence[str] = ()) -> Commands:
    """Ensure that these volume claims are gone, and their volumes as far as their class says so.

    + names: of claims, as regular expressions
    + secrets: names of Secrets that are of use with these volumes alone
    """
    stored = read(Stored, kubeconfig=ADMIN_CONF)
    doomed = volumes.matching_claims(stored, namespace, names)
    if not doomed:
        host.noop("there are no such volume claims")
        return
    for claim in doomed:
        changes.record(
            Change(
                subject=f"PersistentVolumeClaim {namespace}/{claim.name}",
                old=f"{claim.size}, with what is in it",
            )
        )
    yield StringCommand(
        KUBECTL, "-n", QuoteString(namespace), "delete pvc --ignore-not-found --wait=false",
        *(QuoteString(claim.name) for claim in doomed),
    )  # fmt: skip
    claims = [claim.name for claim in doomed]
    released = [claim.volume for claim in doomed if claim.volume]
    yield FunctionCommand(_released, (namespace, claims, released), {})
    if secrets:
        yield StringCommand(
            KUBECTL, "-n", QuoteString(namespace), "delete secret --ignore-not-found",
            *map(QuoteString, secrets),
        )  # fmt: skip


def _released(
    state: State, host: Host, namespace: str, claims: Sequence[str], names: Sequence[str]
) -> bool:
    """Wait until claims and volumes are gone; volumes that their class retains are named.

    + names: of the volumes
    """

    def probe() -> Progress:
        look = volumes.deletion_progress(
            read(Stored, kubeconfig=ADMIN_CONF), namespace, claims, names
        )
        if look.complete:
            return look
        query = f"{KUBECTL} -n {shlex.quote(namespace)} get pods -o {shlex.quote(volumes.USERS)}"
        users = volumes.parse_users(answer(remote.run(host, framed(query)).splitlines()).lines)
        state = read(Cluster, kubeconfig=ADMIN_CONF)
        state = replace(state, pod_issues=read(PodIssues, kubeconfig=ADMIN_CONF))
        return volumes.held_up(look, users, claims, state)

    remedy = f"see `kubectl -n {local_path.NAMESPACE} get pods,events`; run again"
    if not wait_or_fail(host, probe, _TIMEOUT_S, remedy):
        return False
    retained_volumes = [
        item.name for item in read(Stored, kubeconfig=ADMIN_CONF).volumes if item.name in names
    ]
    if retained_volumes:
        inform(f"their StorageClass retains these volumes: {', '.join(retained_volumes)}")
    return True


@operation()
def provisioner_absent(manifest: str) -> Commands:
    """Ensure that the local-path provisioner is gone, unless volumes or claims need it.

    Without it nobody would delete the folders of its volumes, or make those that claims wait for.

    + manifest: what has been applied to install it
    """
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    provisioner = find_workload(state.workloads, local_path.NAMESPACE, local_path.PROVISIONER)
    stored = read(Stored, kubeconfig=ADMIN_CONF)
    if provisioner is None or not provisioner.digest:
        host.noop("gpuboot has no local-path provisioner here")
        return
    if stored.error:
        yield fail(f"the volumes cannot be read: {stored.error}", "run again")
        return
    if users := volumes.users(stored, local_path.STORAGE_CLASS, local_path.PROVISIONER_NAME):
        host.noop(f"the local-path provisioner stays, since volumes need it: {', '.join(users)}")
        return
    yield from kubectl.deleted(manifest)
