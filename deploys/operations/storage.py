"""StorageClasses. All of it runs on the leader."""

from __future__ import annotations

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.facts.kubeadm import Cluster
from deploys.lib import changes
from deploys.lib.answers import read
from deploys.lib.commands import Commands, executing, fail
from deploys.lib.kubectl import ADMIN_CONF, KUBECTL
from deploys.lib.operation import operation
from gpuboot.kubernetes import storage
from gpuboot.plan import Change


@operation()
def default_class() -> Commands:
    """Ensure that local-path is the default StorageClass exactly where there is no other."""
    change = storage.default_change(read(Cluster, kubeconfig=ADMIN_CONF).classes)
    if change is None:
        host.noop("the default StorageClass is set")
        return
    default = change.endswith("=true")
    subject = f"StorageClass {storage.STORAGE_CLASS}"
    changes.record(Change(subject=subject, field="default", old=not default, new=default))
    yield StringCommand(
        KUBECTL, "annotate --overwrite storageclass", storage.STORAGE_CLASS, QuoteString(change)
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
    if missing := storage.missing_class(state.classes, class_name):
        yield fail(*missing)
        return
    host.noop(f"volumes can be provisioned ({class_name or 'by the default StorageClass'})")
