"""Runs Kubernetes' conformance suite in a cluster, and removes what it made however it ends."""

from __future__ import annotations

import base64
import binascii
import io
import json
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.lookup import find_json
from gpuboot.cluster.objects import read_nodes
from gpuboot.cluster.pods import Pod, parse_pod
from gpuboot.conformance import suite_manifests
from gpuboot.conformance.suite_manifests import NAMESPACE, OUTPUT, POD, SUITE, Request
from gpuboot.verify.pod_results import pod_issue
from gpuboot.verify.session import delete_namespace

NODES = 2  # that take pods: specs of scheduling and networking need two
FILES = ("e2e.log", "junit_01.xml")  # what a submission to the CNCF has
SPECS = {"labelSelector": "e2e-run"}  # of the namespaces of specs
PASSED = "•"  # what ginkgo prints for each spec that passed
_NAMESPACES = "/api/v1/namespaces"
_PODS = f"{_NAMESPACES}/{NAMESPACE}/pods"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_EVERY_S = 5.0
_PROGRESS_EVERY_S = 60.0
_START_S = 900.0  # upstream's image is some 300 MB
_SILENT_S = 300.0  # how long the API server may keep silent: specs load it
_HAND_OUT_S = 120.0  # from the suite's end to the end of what hands its results out
_GONE_S = 180.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """What became of it.

    + files: name -> content of what the suite wrote
    + exit_code: of upstream's runner; None where it has not ended
    + error: why there is no result, with a remedy; ""
    + stopped: it was ended before its time
    """

    files: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    error: str = ""
    stopped: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def from_json(text: str) -> Outcome:
    """What `Outcome.to_json` wrote."""
    return Outcome(**json.loads(text))


def run(
    cluster: Cluster, request: Request, progress: Progress, stopped: Callable[[], bool]
) -> Outcome:
    """Run the suite to its end, fetch its results, and remove all that it took.

    + stopped: whether it is to end now

    Raises `ClusterError`.
    """
    if error := _obstacle(cluster) or _remove_leftovers(cluster, progress):
        return Outcome(error=error)
    outcome = Outcome(stopped=True)
    try:
        _start(cluster, request)
        progress(f"{request.image} runs in the namespace {NAMESPACE}; Ctrl-C ends it")
        outcome = _wait(cluster, progress, stopped)
        return outcome
    finally:
        progress(f"removing the namespace {NAMESPACE}")
        _remove(cluster)
        if outcome.exit_code is None:
            _remove_specs(cluster)


def _obstacle(cluster: Cluster) -> str:
    """Why the suite cannot pass here; ""."""
    nodes = read_nodes(cluster).values()
    fit = [node.name for node in nodes if not node.cordoned and not node.untolerated_taint(())]
    if len(fit) >= NODES:
        return ""
    names = ", ".join(fit) or "no node"
    return (
        f"the suite needs {NODES} nodes that take any pod, and there is {names}\n    remedy: "
        "uncordon nodes, or remove their taints (`kubectl describe node NAME`), for as long as it "
        "runs"
    )


def _remove_leftovers(cluster: Cluster, progress: Progress) -> str:
    """Remove what a killed command has left; why not, where one is still at work."""
    item = find_json(cluster, f"{_PODS}/{POD}")
    if item and parse_pod(item).container(SUITE).state != "terminated":
        return (
            f"the suite runs already, in the namespace {NAMESPACE}\n    remedy: wait for its end, "
            f"or end it by `kubectl delete namespace {NAMESPACE}`, which takes its rights as well"
        )
    if _namespace_exists(cluster):
        progress(f"removing what a killed command has left: the namespace {NAMESPACE}")
        _remove(cluster)
        _remove_specs(cluster)
    until = time.monotonic() + _GONE_S
    while _namespace_exists(cluster):
        if time.monotonic() > until:
            return (
                f"the namespace {NAMESPACE} is being deleted and does not go\n    remedy: "
                f"`kubectl get namespace {NAMESPACE} -o yaml` says what holds it"
            )
        time.sleep(1)
    return ""


def _namespace_exists(cluster: Cluster) -> bool:
    items = cluster.json(_NAMESPACES)["items"]
    return any(item["metadata"]["name"] == NAMESPACE for item in items)


def _start(cluster: Cluster, request: Request) -> None:
    namespace = cluster.send("POST", _NAMESPACES, suite_manifests.namespace())
    account = suite_manifests.service_account()
    cluster.send("POST", f"{_NAMESPACES}/{NAMESPACE}/serviceaccounts", account)
    binding = suite_manifests.role_binding(namespace["metadata"]["uid"])
    cluster.send("POST", _BINDINGS, binding)
    cluster.send("POST", _PODS, suite_manifests.pod(request))


def _wait(cluster: Cluster, progress: Progress, stopped: Callable[[], bool]) -> Outcome:
    """Wait until the results are handed out, with a line of progress each minute."""
    started = reported_at = answered_at = time.monotonic()
    ended_at = 0.0
    while not stopped():
        now = time.monotonic()
        try:
            pod = parse_pod(cluster.json(f"{_PODS}/{POD}"))
            answered_at = now
        except ClusterError as error:
            if error.status == 404:
                return Outcome(error="somebody deleted the pod of the suite")
            if now - answered_at > _SILENT_S:
                raise
            pod = None
        if pod and pod.container(OUTPUT).state == "terminated":
            return _results(cluster, pod)
        if pod and pod.container(SUITE).state == "terminated":
            ended_at = ended_at or now
        late = not _has_started(pod) and now - started > _START_S
        if pod and (late or (pod_issue(pod).failed and not _has_started(pod))):
            return Outcome(error=_not_started(pod))
        if ended_at and now - ended_at > _HAND_OUT_S:
            return Outcome(exit_code=_exit_code(pod), error=_without_results(pod))
        if now - reported_at >= _PROGRESS_EVERY_S:
            progress(_state(cluster, pod, now - started))
            reported_at = now
        time.sleep(_EVERY_S)
    return Outcome(stopped=True)


def _has_started(pod: Pod | None) -> bool:
    return not pod or not pod.container(SUITE).waits


def _not_started(pod: Pod) -> str:
    reason = pod_issue(pod).error or "nobody says why"
    return (
        f"the suite's pod did not start: {reason}\n    remedy: its nodes need a way to "
        "registry.k8s.io, or a mirror of it that has the conformance image and those that "
        "`e2e.test --list-images` names"
    )


def _without_results(pod: Pod | None) -> str:
    return (
        f"the suite ended with exit code {_exit_code(pod)} and wrote no results\n    remedy: a "
        "node that was short of memory ends it: choose fewer --processes"
    )


def _state(cluster: Cluster, pod: Pod | None, elapsed: float) -> str:
    minutes = f"{elapsed / 60:.0f} min"
    if pod and pod.container(SUITE).waits:
        return f"{minutes}: {pod_issue(pod).error or 'the pod starts'}"
    try:
        return f"{minutes}: {_log(cluster, SUITE).count(PASSED)} specs passed"
    except ClusterError as error:
        return f"{minutes}: {error}"


def _results(cluster: Cluster, pod: Pod) -> Outcome:
    try:
        files = unpack(_log(cluster, OUTPUT))
    except ValueError as error:
        return Outcome(exit_code=_exit_code(pod), error=str(error))
    return Outcome(files, _exit_code(pod))


def unpack(text: str) -> dict[str, str]:
    """The suite's files, out of what the output container printed. Raises ValueError."""
    try:
        packed = base64.b64decode("".join(text.split()), validate=True)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            members = {PurePosixPath(member.name).name: member for member in archive}
            streams = {name: archive.extractfile(members[name]) for name in FILES}
            return {
                name: stream.read().decode(errors="replace")
                for name, stream in streams.items()
                if stream is not None
            }
    except (binascii.Error, tarfile.TarError, EOFError, OSError, KeyError) as error:
        raise ValueError(f"the suite's results did not arrive whole: {error!r}") from None


def _log(cluster: Cluster, container: str) -> str:
    return cluster.get(f"{_PODS}/{POD}/log", {"container": container}).decode(errors="replace")


def _exit_code(pod: Pod | None) -> int | None:
    suite = pod.container(SUITE) if pod else None
    return suite.exit_code if suite and suite.state == "terminated" else None


def _remove(cluster: Cluster) -> None:
    """The rights first: with the namespace they would go a moment later."""
    cluster.send("DELETE", f"{_BINDINGS}/{NAMESPACE}", missing_ok=True)
    delete_namespace(cluster, NAMESPACE)


def _remove_specs(cluster: Cluster) -> None:
    """Remove namespaces of specs that had no time to do so."""
    for item in cluster.json(_NAMESPACES, SPECS)["items"]:
        delete_namespace(cluster, item["metadata"]["name"])
