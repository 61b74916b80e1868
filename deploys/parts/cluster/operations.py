"""Objects in the cluster. All of it runs on the leader."""

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands, fail, inform
from deploys.engine.operation import operation
from deploys.parts.cluster.fact import Cluster
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL, KUBECTL_APPLY
from deploys.parts.cluster.live_objects import record_objects
from deploys.parts.cluster.objects_fact import Present
from deploys.parts.cluster.release_drift import confirm, describe, put_back, record_drift
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.managed_objects import ManagedObjects, Object, key
from gpuboot.cluster.manifests import YAML_LOADER, with_digest
from gpuboot.cluster.manifests import runtime_class as runtime_class_manifest
from gpuboot.cluster.objects import Node
from gpuboot.cluster.release_objects import drifted
from gpuboot.plan import Change, Decision
from gpuboot.plan.restarted_workloads import label

MANAGER = "gpuboot"  # in whose name manifests are applied
ENFORCE = "pod-security.kubernetes.io/enforce"
_RETRIED = "gpuboot.io/retried"
# annotation of a node: the labels that gpuboot has set, with commas
_SET_LABELS = "gpuboot.io/labels"
CONTROL_PLANE_TAINT = "node-role.kubernetes.io/control-plane"


@operation()
def applied(manifest: str, sentinel_workload: str) -> Commands:
    """Ensure that a manifest is what was applied last.

    + manifest: YAML, several documents
    + sentinel_workload: name of a workload in it, whose annotation tells what was applied
    """
    yield from applied_unless(manifest, sentinel_workload, lambda state: None)


def applied_unless(
    manifest: str, sentinel_workload: str, decide: Callable[[ClusterState], Decision | None]
) -> Commands:
    """What `applied` does, unless somebody has decided otherwise.

    + manifest, sentinel_workload: as of `applied`
    + decide: what somebody has decided, by what the cluster has; None for nothing
    """
    text, digest = with_digest(manifest)
    items = [item for item in yaml.load_all(text, Loader=YAML_LOADER) if item]
    arguments = {"kubeconfig": ADMIN_CONF, "references": [key(item) for item in items]}
    foresee([(host, Cluster, {"kubeconfig": ADMIN_CONF}), (host, Present, arguments)])
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    if decision := decide(state):
        changes.respect(decision)
        host.noop(f"{decision.what}: {decision.why}")
        return
    if any(item.name == sentinel_workload and item.digest == digest for item in state.workloads):
        yield from _as_applied(items, read(Present, **arguments), sentinel_workload)
        return
    _record_manifest(manifest, {} if state.error else None)
    yield StringCommand(KUBECTL_APPLY, "-", _stdin=text)


def deleted(manifest: str) -> Commands:
    """Delete what a manifest has, but for namespaces, which may hold what others have put there.

    Deployments go last: by them the next run tells what is left.
    """
    objects = sorted(
        (
            item
            for item in yaml.load_all(manifest, Loader=YAML_LOADER)
            if item and item["kind"] != "Namespace"
        ),
        key=lambda item: item["kind"] == "Deployment",
    )
    for item in objects:
        changes.record(Change(subject=label(item), old="there"))
    text = yaml.safe_dump_all(objects, sort_keys=False)
    yield StringCommand(KUBECTL, "delete --ignore-not-found -f - >/dev/null", _stdin=text)


def _as_applied(items: list[Object], present: ManagedObjects, workload: str) -> Commands:
    """What somebody has deleted or changed since, put back."""
    drifts = [] if present.error else confirm(drifted(items, present), MANAGER)
    if not drifts:
        host.noop(f"{workload} is as in the manifest")
        return
    record_drift(drifts, "")
    inform(f"{workload}: putting back what is not as it was applied: {describe(drifts)}")
    yield from put_back(drifts, MANAGER)


def _record_manifest(manifest: str, live: Mapping[str, Mapping[str, Any]] | None) -> None:
    """+ live: {} where there is no cluster yet"""
    record_objects([item for item in yaml.load_all(manifest, Loader=YAML_LOADER) if item], live)


@operation()
def labels_and_taints(
    labels: Mapping[str, Mapping[str, str | None]], tainted: Mapping[str, bool]
) -> Commands:
    """Ensure labels of nodes, and whether control-plane nodes refuse workloads.

    A label that an earlier run has set, and that is not asked for any more, is taken away. An
    annotation of the node names those that gpuboot has set; those of others stay.

    + labels: node -> label -> value; None: the label must not be there
    + tainted: control-plane node -> whether it refuses workloads
    """
    nodes_by_name = {node.name: node for node in read(Cluster, kubeconfig=ADMIN_CONF).nodes}
    relabelled = {
        name: metadata
        for name, required in labels.items()
        if (metadata := _label_changes(nodes_by_name.get(name), required))
    }
    taint = f"{CONTROL_PLANE_TAINT}:NoSchedule"
    retainted = {
        name: required
        for name, required in tainted.items()
        if name in nodes_by_name and (taint in nodes_by_name[name].taints) != required
    }
    for name, metadata in relabelled.items():
        _record_labels(name, nodes_by_name.get(name), metadata)
    changes.record(*[
        Change(subject=f"node {name}", field=f"taint {taint}", old=not required, new=required)
        for name, required in retainted.items()
    ])  # fmt: skip
    for name, metadata in relabelled.items():
        patch = json.dumps({"metadata": metadata})
        yield StringCommand(
            KUBECTL, "patch node", QuoteString(name), "--type=merge -p", QuoteString(patch)
        )
    for name, wanted_taint in retainted.items():
        word = taint if wanted_taint else f"{taint}-"
        yield StringCommand(KUBECTL, "taint node", QuoteString(name), word)
    if not relabelled and not retainted:
        host.noop("labels and taints are up to date")


def _label_changes(
    node: Node | None, required: Mapping[str, str | None]
) -> dict[str, dict[str, str | None]]:
    """What of a node's metadata has to change, as a merge patch; {} for nothing.

    + node: None where it has not joined yet
    """
    labels, annotations = (node.labels, node.annotations) if node else ({}, {})
    recorded_labels = annotations.get(_SET_LABELS, "")
    required = {**dict.fromkeys(filter(None, recorded_labels.split(",")), None), **required}
    own_labels = ",".join(sorted(key for key, value in required.items() if value is not None))
    metadata = {
        "labels": {key: value for key, value in required.items() if labels.get(key) != value},
        "annotations": {_SET_LABELS: own_labels or None} if own_labels != recorded_labels else {},
    }
    return {part: values for part, values in metadata.items() if values}


def _record_labels(
    name: str, node: Node | None, metadata: Mapping[str, Mapping[str, str | None]]
) -> None:
    subject = f"node {name}"
    changes.record(*_labels(subject, node.labels if node else {}, metadata.get("labels", {})))
    if metadata.keys() == {"annotations"}:  # beside labels it says nothing new
        old = node.annotations.get(_SET_LABELS) if node else None
        new = metadata["annotations"][_SET_LABELS]
        changes.record(Change(subject=subject, field=f"annotation {_SET_LABELS}", old=old, new=new))


def _labels(subject: str, old: Mapping[str, str], new: Mapping[str, str | None]) -> list[Change]:
    return [
        Change(subject=subject, field=f"label {key}", old=old.get(key), new=value)
        for key, value in new.items()
    ]


@operation()
def namespace(namespace: str, labels: Mapping[str, str] | None = None) -> Commands:
    """Ensure a namespace with these labels; labels of others stay."""
    existing = read(Cluster, kubeconfig=ADMIN_CONF).namespaces.get(namespace)
    missing = {
        key: value
        for key, value in (labels or {}).items()
        if existing is None or existing.get(key) != value
    }
    if existing is not None and not missing:
        host.noop(f"namespace {namespace} exists")
        return
    subject = f"namespace {namespace}"
    changes.record(*([Change(subject=subject, new="created")] if existing is None else []))
    changes.record(*_labels(subject, existing or {}, missing))
    if existing is None:
        yield StringCommand(KUBECTL, "create namespace", QuoteString(namespace))
    if missing:
        yield StringCommand(
            KUBECTL, "label --overwrite namespace", QuoteString(namespace),
            *[QuoteString(f"{key}={value}") for key, value in missing.items()],
        )  # fmt: skip
    if ENFORCE in missing and (existing or {}).get(ENFORCE):
        yield _retried(namespace)


def _retried(namespace: str) -> StringCommand:
    """A command by which controllers try again at once to make pods that were refused.

    They try again at growing distances, up to a quarter of an hour, or when their object changes.
    """
    of_namespace = f"{KUBECTL} -n {shlex.quote(namespace)}"
    return StringCommand(
        f"owners=$({of_namespace} get daemonsets,replicasets,statefulsets -o name); "
        f'[ -z "$owners" ] || {{ {of_namespace} annotate --overwrite $owners {_RETRIED}=yes && '
        f"{of_namespace} annotate $owners {_RETRIED}-; }} || true"
    )


@operation()
def runtime_class(runtime: str, handler: str) -> Commands:
    """Ensure a RuntimeClass, by whose name pods ask for one of containerd's runtime handlers.

    + runtime: its name
    + handler: the handler's name in containerd, which cannot be changed in a RuntimeClass
    """
    existing = read(Cluster, kubeconfig=ADMIN_CONF).runtimes.get(runtime)
    if existing == handler:
        host.noop(f"RuntimeClass {runtime} exists")
    elif existing is None:
        changes.record(Change(subject=f"RuntimeClass {runtime}", field="handler", new=handler))
        yield StringCommand(KUBECTL_APPLY, "-", _stdin=runtime_class_manifest(runtime, handler))
    else:
        yield fail(
            f"RuntimeClass {runtime} is for the handler {existing}, not {handler}",
            f"where nothing else needs it, `kubectl delete runtimeclass {runtime}`, then run again",
        )
