"""Objects in the cluster, and waiting for them. All of it runs on the leader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import yaml
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.facts.kubeadm import Cluster
from deploys.lib import changes
from deploys.lib.answers import read
from deploys.lib.commands import Commands, executing, fail
from deploys.lib.kubectl import ADMIN_CONF, KUBECTL, KUBECTL_APPLY
from deploys.lib.live_objects import record_objects
from deploys.lib.operation import operation
from deploys.lib.waiting import unfinished, wait_until
from gpuboot.kubernetes import readiness
from gpuboot.kubernetes.manifests import runtime_class as runtime_class_manifest
from gpuboot.kubernetes.manifests import with_digest
from gpuboot.kubernetes.operands import ExpectedOperand
from gpuboot.kubernetes.readiness import Progress
from gpuboot.plan import Change

CONTROL_PLANE_TAINT = "node-role.kubernetes.io/control-plane"


@operation()
def applied(manifest: str, sentinel_workload: str) -> Commands:
    """Ensure that a manifest is what was applied last.

    + manifest: YAML, several documents
    + sentinel_workload: name of a workload in it, whose annotation tells what was applied
    """
    text, digest = with_digest(manifest)
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    if any(item.name == sentinel_workload and item.digest == digest for item in state.workloads):
        host.noop(f"{sentinel_workload} is as in the manifest")
        return
    _record_manifest(manifest, {} if state.error else None)
    yield StringCommand(KUBECTL_APPLY, "-", _stdin=text)


def _record_manifest(manifest: str, existing: Iterable[str] | None) -> None:
    """+ existing: {} where there is no cluster yet"""
    record_objects([item for item in yaml.safe_load_all(manifest) if item], existing)


@operation()
def labels_and_taints(
    labels: Mapping[str, Mapping[str, str | None]], tainted: Mapping[str, bool]
) -> Commands:
    """Ensure labels of nodes, and whether control-plane nodes refuse workloads.

    + labels: node -> label -> value; None: the label must not be there
    + tainted: control-plane node -> whether it refuses workloads
    """
    known = {node.name: node for node in read(Cluster, kubeconfig=ADMIN_CONF).nodes}
    relabelled = {
        name: changed
        for name, required in labels.items()
        if (changed := _label_changes(known[name].labels if name in known else {}, required))
    }
    taint = f"{CONTROL_PLANE_TAINT}:NoSchedule"
    retainted = {
        name: required
        for name, required in tainted.items()
        if name in known and (taint in known[name].taints) != required
    }
    for name, required in relabelled.items():
        old = known[name].labels if name in known else {}
        changes.record(*_labels(f"node {name}", old, required))
    changes.record(*[
        Change(subject=f"node {name}", field=f"taint {taint}", old=not required, new=required)
        for name, required in retainted.items()
    ])  # fmt: skip
    for name, required in relabelled.items():
        yield StringCommand(
            KUBECTL, "label --overwrite node", QuoteString(name),
            *map(QuoteString, _words(required)),
        )  # fmt: skip
    for name, wanted_taint in retainted.items():
        word = taint if wanted_taint else f"{taint}-"
        yield StringCommand(KUBECTL, "taint node", QuoteString(name), word)
    if not relabelled and not retainted:
        host.noop("labels and taints are up to date")


def _labels(subject: str, old: Mapping[str, str], new: Mapping[str, str | None]) -> list[Change]:
    return [
        Change(subject=subject, field=f"label {key}", old=old.get(key), new=value)
        for key, value in new.items()
    ]


def _label_changes(
    existing: Mapping[str, str], required: Mapping[str, str | None]
) -> dict[str, str | None]:
    return {key: value for key, value in required.items() if existing.get(key) != value}


def _words(labels: Mapping[str, str | None]) -> list[str]:
    return [f"{key}-" if value is None else f"{key}={value}" for key, value in labels.items()]


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


@operation()
def nodes_ready(names: Sequence[str], timeout_s: int = 300) -> Commands:
    """Wait until these nodes are Ready, and flannel, kube-proxy and CoreDNS run; no changes."""

    def probe() -> Progress:
        state = read(Cluster, kubeconfig=ADMIN_CONF)
        system = {"coredns": 1, "kube-proxy": len(names)}
        return readiness.all_of(
            readiness.nodes_ready(state, names),
            readiness.workloads_ready(state, "kube-flannel", {"kube-flannel-ds": len(names)}),
            readiness.workloads_ready(state, "kube-system", system),
        )

    yield from _wait(probe, timeout_s, "see `journalctl -u kubelet` on a node that is not Ready")


@operation()
def workloads_ready(namespace: str, required: Sequence[str], timeout_s: int = 900) -> Commands:
    """Wait until all workloads of a namespace are rolled out; changes nothing.

    + required: names that must be there, whoever makes them
    """

    def probe() -> Progress:
        return readiness.workloads_ready(read(Cluster, kubeconfig=ADMIN_CONF), namespace, required)

    yield from _wait(probe, timeout_s, f"see `kubectl -n {namespace} get pods,events`")


@operation()
def gpus_ready(
    namespace: str,
    operands: Mapping[str, int],
    gpus: Mapping[str, int],
    policy: bool = True,
    timeout_s: int = 900,
    made_of: Mapping[str, ExpectedOperand] | None = None,
) -> Commands:
    """Wait until GPU workloads can run: operands, ClusterPolicy, GPUs on offer; changes nothing.

    + operands: DaemonSet -> number of nodes it must be on
    + gpus: node -> GPUs it must offer; {}: not looked at
    + policy: whether there is a ClusterPolicy to look at
    + made_of: DaemonSet -> what the operator makes it of; None: not looked at
    """

    def probe() -> Progress:
        state = read(Cluster, kubeconfig=ADMIN_CONF)
        parts = [
            readiness.operands_current(state, namespace, made_of or {}),
            readiness.workloads_ready(state, namespace, operands),
            readiness.gpus_allocatable(state, gpus, "nvidia.com/gpu"),
        ]
        if policy:
            parts.append(readiness.policy_ready(state))
        return readiness.all_of(*parts)

    yield from _wait(
        probe,
        timeout_s,
        f"see `kubectl -n {namespace} get pods` and the logs of what is not ready; a node that"
        " offers too few GPUs: `nvidia-smi` on it, then `kubectl describe node`",
    )


def _wait(probe: Callable[[], Progress], timeout_s: float, remedy: str) -> Commands:
    if not executing():
        host.noop("there is nothing to wait for before the run")
        return
    end = wait_until(host, probe, timeout_s)
    if end.done:
        host.noop(end.text)
    else:
        yield fail(unfinished(end, timeout_s), f"{remedy}, then run again")
