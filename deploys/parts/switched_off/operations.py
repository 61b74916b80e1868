"""Parts of the cluster that are switched off are taken away. All of it runs on the leader."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import changes, remote
from deploys.engine.answers import read
from deploys.engine.commands import (
    Commands,
    executing,
    fail,
    failure,
    report_failure,
    shell_failure,
)
from deploys.engine.operation import operation
from deploys.engine.waiting import unfinished, wait_or_fail, wait_until
from deploys.parts.cluster.fact import Cluster, PodIssues
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from deploys.parts.cluster.objects_fact import Inside
from deploys.parts.helm.fact import HelmRelease
from deploys.parts.helm.helm_hooks import watched
from deploys.parts.helm.operations import HELM, VALUES
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.helm_releases import Release
from gpuboot.cluster.managed_objects import KINDS
from gpuboot.cluster.readiness import Progress, deployment_ready
from gpuboot.cluster.switched_off_parts import (
    REMOVING,
    Contents,
    going,
    leaving,
    lost_claims,
    shown_objects,
    stale_labels,
)
from gpuboot.plan import Change, KeptItem
from gpuboot.plan.restarted_workloads import label

_OPERATOR = "gpu-operator"
_TIMEOUT_S = 600
_FINALIZED_S = 50
_KEEP_CLAIMS = (
    "switch it on for one run, which has Helm keep them; or give them up by --data "
    "gpuboot_delete_volumes=monitoring"
)


@operation()
def release(
    release: str,
    namespace: str,
    chart: str,
    instances: Sequence[str] = (),
    objects: Sequence[Sequence[str]] = (),
    node_labels: bool = False,
    retained: Sequence[KeptItem] = (),
    delete_claims: bool = False,
) -> Commands:
    """Ensure that a release which gpuboot installed is gone, with all that its programs made.

    Its custom resources go first, while their operator is there; then the release; then what is
    left behind. A release of that name which somebody else installed stays.

    + instances: kinds of those custom resources; + node_labels: the GPU Operator's go as well
    + objects: that are left behind: a namespace, then arguments of kubectl delete
    + retained: what stays, for the plan; + delete_claims: volume claims need not
    """
    live = read(HelmRelease, release=release, namespace=namespace, kubeconfig=ADMIN_CONF)
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    is_removing = state.namespaces.get(namespace, {}).get(REMOVING) == release
    if (error := live.error) and executing():
        yield fail(f"Helm cannot read release {release}: {error}", "run again")
        return
    if not ((live.chart == chart and live.managed) or (is_removing and not live.status)):
        host.noop(f"release {release} {'is not of gpuboot' if live.status else 'does not exist'}")
        return
    labels = _whose_labels(live.config) if node_labels else ""
    _record(live, state, release, namespace, labels)
    changes.record(*retained)
    if not delete_claims and (doomed_claims := lost_claims(live, release, namespace)):
        cause = f"volume claims of {release} would go with it: {', '.join(doomed_claims)}"
        yield fail(cause, _KEEP_CLAIMS)
        return
    yield StringCommand(KUBECTL, "label --overwrite namespace", namespace, f"{REMOVING}={release}")
    yield from _uninstalled(live, release, namespace, instances)
    cleaned = (release, namespace, [*instances], [list(words) for words in objects], labels)
    yield FunctionCommand(_cleaned, cleaned, {})
    yield StringCommand(KUBECTL, "label namespace", namespace, f"{REMOVING}-")


def _uninstalled(live: Release, release: str, namespace: str, instances: Sequence[str]) -> Commands:
    for item in shown_objects(live, release, namespace):
        if item["kind"] in instances:
            yield _deleted_instance(item["kind"], item["metadata"])
    if live.status:
        command = StringCommand(
            HELM, "uninstall", QuoteString(release), "--namespace", QuoteString(namespace),
            "--ignore-not-found --timeout 10m >/dev/null",
        )  # fmt: skip
        yield watched(command, f"removal of Helm release {release}", namespace)
    yield StringCommand(f"rm -f {VALUES}/{release}.json")


def _record(live: Release, state: ClusterState, release: str, namespace: str, labels: str) -> None:
    old = f"{live.chart} {live.version}" if live.status else "partly removed"
    changes.record(Change(subject=f"Helm release {release}", old=old))
    for item in shown_objects(live, release, namespace):
        changes.record(Change(subject=label(item), old="there"))
    if labels:
        _record_labels(state, release, namespace, labels)


def _whose_labels(config: Mapping[str, Any]) -> str:
    """`discovery` where node feature discovery is part of a GPU Operator with these values."""
    return "discovery" if (config.get("nfd") or {}).get("enabled", True) else "operator"


def _record_labels(state: ClusterState, release: str, namespace: str, labels: str) -> None:
    contents = read(Inside, kubeconfig=ADMIN_CONF, namespace=namespace)
    for node, keys in _stale(state, contents, release, labels).items():
        changes.record(
            Change(subject=f"node {node}", field="labels of the GPU Operator", old=len(keys))
        )


def _stale(
    state: ClusterState, contents: Contents, release: str, labels: str
) -> dict[str, list[str]]:
    """Node -> labels. + labels: as `_whose_labels` tells"""
    labels_by_node = {node.name: node.labels for node in state.nodes}
    return stale_labels(labels_by_node, contents, release, labels == "discovery")


def _deleted_instance(kind: str, meta: Mapping[str, str]) -> StringCommand:
    """The command that deletes a custom resource, if the cluster knows its kind still."""
    of = KINDS[kind]
    plural = f"{of.plural}.{of.version.partition('/')[0]}"
    scope = ["-n", QuoteString(meta["namespace"])] if of.namespaced else []
    return StringCommand(
        f"! {KUBECTL} get crd {plural} >/dev/null 2>&1 ||", KUBECTL, *scope, "delete", plural,
        QuoteString(meta["name"]), f"--ignore-not-found --timeout={_FINALIZED_S}s ||",
        shell_failure(
            f"{kind} {meta['name']} is not deleted in {_FINALIZED_S} s: a finalizer holds it",
            f"see `kubectl get {plural} -A -o yaml`, and the log of whose finalizer it has",
        ),
    )  # fmt: skip


def _cleaned(
    state: State,
    host: Host,
    release: str,
    namespace: str,
    instances: Sequence[str],
    objects: Sequence[Sequence[str]],
    labels: str,
) -> bool:
    """Wait until all of a release has gone, and take away what it leaves behind.

    + labels: of nodes: "", "operator", or "discovery" for those of node feature discovery as well
    """

    def probe() -> Progress:
        contents = read(Inside, kubeconfig=ADMIN_CONF, namespace=namespace)
        if contents.error:
            return Progress(False, f"{release} is going: {contents.error}")
        return going(leaving(contents, release, instances), release, namespace)

    remedy = f"see `kubectl -n {namespace} get pods,events`, then run again"
    if not wait_or_fail(host, probe, _TIMEOUT_S, remedy):
        return False
    commands = [
        f"-n {place} delete --ignore-not-found {' '.join(words)}" for place, *words in objects
    ]
    if labels:
        contents = read(Inside, kubeconfig=ADMIN_CONF, namespace=namespace)
        nodes = _stale(read(Cluster, kubeconfig=ADMIN_CONF), contents, release, labels)
        commands += [
            f"label node {node} {' '.join(f'{label}-' for label in nodes[node])}" for node in nodes
        ]
    try:
        for command in commands:
            remote.run(host, f"{KUBECTL} {command} >/dev/null")
    except PyinfraError as error:
        return report_failure(host, failure(str(error), "run again"))
    return True


@operation()
def operand(daemonset: str, namespace: str, timeout_s: float = 300) -> Commands:
    """Wait until the GPU Operator has taken one of its DaemonSets away; changes nothing."""
    if not executing():
        host.noop("there is nothing to wait for before the run")
        return

    def probe() -> Progress:
        state = read(Cluster, kubeconfig=ADMIN_CONF)
        is_present = any(
            (item.namespace, item.name) == (namespace, daemonset) for item in state.operands
        )
        if state.error or not is_present:
            return Progress(not is_present, state.error)
        state = replace(state, pod_issues=read(PodIssues, kubeconfig=ADMIN_CONF))
        operator = deployment_ready(state, namespace, _OPERATOR)
        return replace(operator, complete=False, text=f"{daemonset} is there; {operator.text}")

    end = wait_until(host, probe, timeout_s)
    if end.complete:
        host.noop(f"there is no {daemonset}")
        return
    log = f"see `kubectl -n {namespace} logs deployment/{_OPERATOR}`, then run again"
    yield fail(*unfinished(end, timeout_s, log))
