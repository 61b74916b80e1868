"""Objects of a Helm release that somebody has deleted or changed since. On the leader."""

from collections.abc import Sequence

from pyinfra.api.command import QuoteString, StringCommand

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing
from deploys.engine.framed import HiddenInput
from deploys.parts.cluster.kubectl import KUBECTL, apply_as, with_objects
from deploys.parts.cluster.objects_fact import Applied
from gpuboot.cluster.helm_releases import Release
from gpuboot.cluster.managed_objects import ManagedObjects, Object, key
from gpuboot.cluster.manifests import manifest
from gpuboot.cluster.release_objects import Drift, confirmed, drifted, release_objects
from gpuboot.plan import Change
from gpuboot.plan.differences import field_change
from gpuboot.plan.restarted_workloads import effects, label

# Controllers whose pods were refused try again at distances that grow to a quarter of an hour, and
# at once when their object changes (kubernetes v1.36, pkg/controller/daemon, updateDaemonset).
_TRY_AGAIN = (
    "annotate --overwrite daemonsets,replicasets,statefulsets --all "
    'gpuboot.io/tried-again="$(date +%s)"'
)
MANAGER = "helm"  # in whose name Helm applies objects


def drift(live: Release, managed: ManagedObjects, release: str, namespace: str) -> list[Drift]:
    """What of a release is not as its newest revision says, confirmed by the API server.

    + live: the release as Helm has it; + managed: the objects that there are
    """
    if managed.error:
        return []
    return confirm(drifted(release_objects(live, release, namespace), managed), MANAGER)


def confirm(drifts: Sequence[Drift], manager: str) -> list[Drift]:
    """The drifts that the API server confirms. + manager: in whose name objects are applied"""
    objects = [item.desired for item in drifts if item.desired["kind"] != "Secret"]
    if not objects:
        return list(drifts)
    applied = read(Applied, manager=manager, _stdin=HiddenInput([manifest(objects)]))
    return confirmed(drifts, applied)


def put_back(drifts: Sequence[Drift], manager: str, namespace: str = "") -> Commands:
    """Commands that make the objects again as they are wanted.

    + manager: in whose name; what others have added goes first, since to apply leaves it
    + namespace: of the release
    """
    if cleaned := [
        cleaned_object for item in drifts if not item.remade and (cleaned_object := item.cleaned)
    ]:
        yield with_objects(f"{KUBECTL} replace --field-manager {manager} -f", cleaned)
    if remade := [item.desired for item in drifts if item.remade]:
        yield with_objects(f"{KUBECTL} replace --force --field-manager {manager} -f", remade)
    if applied := [item.desired for item in drifts if not item.remade]:
        yield with_objects(apply_as(manager), applied)
    for name in sorted({_of_pods(item.desired, namespace) for item in drifts} - {""}):
        yield StringCommand(KUBECTL, "-n", QuoteString(name), _TRY_AGAIN)


def _of_pods(item: Object, namespace: str) -> str:
    """The namespace whose pods are refused while an object is missing; "" where none are."""
    kind, namespace_name, name = key(item)
    return {
        "Namespace": name,  # its labels enforce a Pod Security Standard
        "ServiceAccount": namespace_name,
        "RuntimeClass": namespace,
        "PriorityClass": namespace,
    }.get(kind, "")


def record_drift(drifts: Sequence[Drift], namespace: str) -> None:
    """Record what putting it back changes, and what that restarts. + namespace: of the release"""
    for item in drifts:
        subject = label(item.desired)
        if item.live is None:
            changes.record(Change(subject=subject, old="deleted", new="created again"))
        changes.record(*[field_change(subject, *field) for field in item.fields])
        if item.live and item.applied and not executing():
            changes.record(*effects(item.live, item.applied, namespace))


def describe(drifts: Sequence[Drift]) -> str:
    """The drifts as a line for the person who watches the run."""
    return ", ".join(
        f"{label(item.desired)} ({', '.join(path for path, *_ in item.fields) or 'deleted'})"
        for item in drifts
    )
