"""Sets of objects in the cluster that gpuboot alone decides about. All of it runs on the leader."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing, fail, inform
from deploys.engine.operation import operation
from deploys.parts.cluster import deployments
from deploys.parts.cluster.fact import Cluster
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL, KUBECTL_APPLY, with_objects
from deploys.parts.cluster.listed_objects import managed_objects
from deploys.parts.cluster.live_objects import record_objects
from gpuboot.cluster import manifests
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.managed_objects import ManagedObjects
from gpuboot.cluster.set_fields import field_differences
from gpuboot.monitoring import network_policies
from gpuboot.plan import Change, Effect, KeptItem
from gpuboot.plan.differences import field_change
from gpuboot.plan.restarted_workloads import label

_TEAM = "its team is gone from the settings, what is in it stays; kubectl delete namespace ends it"


@operation()
def synced(
    objects: Sequence[manifests.Object],
    namespaces: Sequence[str] | None,
    after: str = "",
    timeout_s: int = 300,
    pod_network: bool = False,
    kinds: Sequence[str] = tuple(manifests.KINDS),
) -> Commands:
    """Ensure that these objects are there as they are given, and no others of ours.

    + objects: of kinds of `manifests.KINDS`, each with its namespace where it has one
    + namespaces: where objects of these kinds that gpuboot made and that are not given are removed;
      None: in all
    + after: `namespace/deployment` that must run before anything can be applied; "": none
    + timeout_s: how long to wait for it
    + kinds: those that it is about
    + pod_network: let hosts that policies let in do so by their addresses in the pod network too

    What somebody has changed is put back, and what was added to them is taken away; labels and
    annotations of others stay.
    """
    managed = managed_objects()
    state = read(Cluster, kubeconfig=ADMIN_CONF) if pod_network else ClusterState()
    if (error := managed.error or state.error) and executing():
        yield fail(f"the cluster's objects cannot be read: {error}", "run again")
        return
    ranges = {address: node.pod_cidrs for node in state.nodes for address in node.address.split()}
    objects = network_policies.reached(objects, ranges)
    change = manifests.difference(objects, managed.objects, namespaces, kinds)
    if change.is_empty:
        host.noop(f"{len(objects)} objects are up to date")
        return
    inform(describe(change))
    _record(change, managed)
    if after and (change.replace or change.remake or change.apply):
        yield deployments.running(after, timeout_s)
    yield from _applied(change)


def _applied(change: manifests.Difference) -> Commands:
    if change.replace:
        replaced = [replacement.item for replacement in change.replace]
        yield with_objects(f"{KUBECTL} replace --field-manager gpuboot -f", replaced)
    if change.remake:
        command = f"{KUBECTL} replace --force --field-manager gpuboot -f"
        yield with_objects(command, change.remake)
    if change.apply:
        yield with_objects(KUBECTL_APPLY, change.apply)
    yield from _deleted(change.delete)


def _deleted(objects: Sequence[manifests.Object]) -> Commands:
    names = defaultdict(list)
    for kind, namespace, name in map(manifests.key, objects):
        names[namespace, manifests.KINDS[kind]].append(name)
    for (namespace, plural), items in names.items():
        scope = ["-n", QuoteString(namespace)] if namespace else []
        yield StringCommand(
            KUBECTL, *scope, "delete --ignore-not-found", plural, *map(QuoteString, items)
        )


def _record(change: manifests.Difference, managed: ManagedObjects) -> None:
    live = {label(item): item for item in managed.objects}
    record_objects([*change.apply, *change.remake], live)
    for replacement in change.replace:
        changes.record(*_replaced(replacement))
    changes.record(*[Change(subject=label(item), old="present") for item in change.delete])
    changes.record(*[
        KeptItem(what=f"namespace {item['metadata']['namespace']}", why=_TEAM)
        for item in change.delete
        if item["kind"] == "ResourceQuota"
    ])  # fmt: skip
    changed_objects = [
        *change.apply,
        *change.delete,
        *(replacement.item for replacement in change.replace),
    ]
    if {item["kind"] for item in changed_objects} & manifests.OPERATORS.keys():
        note = "it reads the new configuration; nothing restarts"
        changes.record(Effect(kind="reload", target="Prometheus", note=note))


def _replaced(replacement: manifests.Replaced) -> Iterator[Change]:
    subject = label(replacement.item)
    for path in replacement.added:
        part, _, name = path.partition(".")
        value = replacement.live[part].get(name, "added by hand")
        yield field_change(subject, path, value, None)
    yield from (
        field_change(subject, *item)
        for item in field_differences(replacement.item, replacement.live)
    )


def describe(change: manifests.Difference) -> str:
    """The difference as a line for the person who watches the run."""
    words = []
    if change.apply:
        words.append("applying " + _names(change.apply))
    if change.remake:
        words.append("making anew " + _names(change.remake))
    if change.replace:
        words.append("putting back " + _names(replacement.item for replacement in change.replace))
    if change.delete:
        words.append("removing " + _names(change.delete))
    return "; ".join(words)


def _names(objects: Iterable[manifests.Object]) -> str:
    return ", ".join(f"{kind} {name}" for kind, _, name in map(manifests.key, objects))
