"""Sets of objects in the cluster that gpuboot alone decides about. All of it runs on the leader."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.facts.kubeadm import Cluster
from deploys.facts.objects import Owned
from deploys.lib import changes
from deploys.lib.answers import read
from deploys.lib.commands import Commands, executing, fail, inform
from deploys.lib.kubectl import ADMIN_CONF, KUBECTL, KUBECTL_APPLY
from deploys.lib.live_objects import record_objects
from deploys.lib.operation import operation
from gpuboot.kubernetes import manifests, network_policies
from gpuboot.kubernetes.cluster_state import ClusterState
from gpuboot.plan import Change, Effect

# The Prometheus operator checks rules by a webhook, which refuses for a moment after its start.
_APPLY = f"""\
file=$(mktemp); trap 'rm -f "$file"' EXIT; cat >"$file"
{{wait}}for left in $(seq 30); do
  if said=$({KUBECTL_APPLY} "$file" 2>&1)
  then exit 0; fi
  case $said in *"failed calling webhook"*) sleep 1 ;; *) break ;; esac
done
printf '%s\\n' "$said" >&2; exit 1"""


@operation()
def synced(
    objects: Sequence[manifests.Object],
    namespaces: Sequence[str],
    after: str = "",
    timeout_s: int = 300,
    pod_network: bool = False,
) -> Commands:
    """Ensure that these objects are there as they are given, and no others of ours.

    + objects: ConfigMaps, NetworkPolicies, PrometheusRules and ServiceMonitors, each with its
      namespace
    + namespaces: where objects of these kinds that gpuboot made and that are not given are removed
    + after: `namespace/deployment` that must run before anything can be applied; "": none
    + timeout_s: how long to wait for it
    + pod_network: let hosts that policies let in do so by their addresses in the pod network too

    What is there is compared by the digest that each object carries: one fact tells them all.
    """
    owned = read(Owned, kubeconfig=ADMIN_CONF)
    state = read(Cluster, kubeconfig=ADMIN_CONF) if pod_network else ClusterState()
    if (error := owned.error or state.error) and executing():
        yield fail(f"the cluster's objects cannot be read: {error}", "run again")
        return
    ranges = {address: node.pod_cidrs for node in state.nodes for address in node.address.split()}
    objects = network_policies.reached(objects, ranges)
    change = manifests.difference(objects, owned.objects, namespaces)
    if change.nothing:
        host.noop(f"{len(objects)} objects are up to date")
        return
    inform(describe(change))
    _record(change, owned.objects)
    if change.apply:
        script = _APPLY.format(wait=_rollout(after, timeout_s))
        yield StringCommand("sh -ec", QuoteString(script), _stdin=manifests.manifest(change.apply))
    yield from _deleted(change.delete)


def _deleted(objects: Sequence[manifests.Owned]) -> Commands:
    names = defaultdict(list)
    for item in objects:
        names[item.namespace, manifests.KINDS[item.kind]].append(item.name)
    for (namespace, kind), items in names.items():
        yield StringCommand(
            KUBECTL, "-n", QuoteString(namespace), "delete --ignore-not-found", kind,
            *map(QuoteString, items),
        )  # fmt: skip


def _record(change: manifests.Difference, owned: Sequence[manifests.Owned]) -> None:
    names = {f"{item.kind} {item.namespace}/{item.name}" for item in owned}
    record_objects(change.apply, names)
    changes.record(*[
        Change(subject=f"{item.kind} {item.namespace}/{item.name}", old="present")
        for item in change.delete
    ])  # fmt: skip
    kinds = {item["kind"] for item in change.apply} | {item.kind for item in change.delete}
    if kinds & manifests.OPERATORS.keys():
        note = "it reads the new configuration; nothing restarts"
        changes.record(Effect(kind="reload", target="Prometheus", note=note))


def _rollout(after: str, timeout_s: int) -> str:
    if not after:
        return ""
    namespace, _, name = after.partition("/")
    return (
        f"{KUBECTL} -n {shlex.quote(namespace)} rollout status deployment/{shlex.quote(name)}"
        f" --timeout={timeout_s}s >&2\n"
    )


def describe(change: manifests.Difference) -> str:
    """One line for the person who watches the run."""
    words = []
    if change.apply:
        keys = map(manifests.key, change.apply)
        words.append("applying " + ", ".join(f"{kind} {name}" for kind, _, name in keys))
    if change.delete:
        words.append("removing " + ", ".join(f"{item.kind} {item.name}" for item in change.delete))
    return "; ".join(words)
