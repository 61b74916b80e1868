"""Why pods are not even made: what refuses them, in the words of the API server.

Only owners and events tell of such pods. An owner with all its pods was refused before, and is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpuboot.cluster.refusals import REMEDIES, Kind, Refusal, refusal
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.causes.absent_causes import OF_PODS, of_refused
from gpuboot.diagnose.facts import RECENT_S, Facts

_EVENT_S = 180.0  # controllers try again, at growing distances


def refused_owners(facts: Facts) -> Iterator[tuple[str, Refusal | None, str, Confidence]]:
    """Each owner whose pods are refused: its name, by what, the words, and how sure that is.

    By what is None where the words name nothing that refuses.
    """
    cluster = facts.cluster
    words: dict[str, tuple[str, Confidence]] = {}
    for workload in cluster.workloads:
        # a Deployment says what its ReplicaSet says
        if workload.kind != "Deployment" and workload.refusal and workload.ready < workload.desired:
            words[workload.key] = f"{workload.kind}: {workload.refusal}", Confidence.CERTAIN
    satisfied = {
        workload.key for workload in cluster.workloads if workload.ready >= workload.desired
    }
    present = {(workload.kind, workload.key) for workload in cluster.workloads}
    kinds = {kind for kind, _ in present}
    for event in sorted(cluster.events, key=lambda item: -item.at):
        ago = cluster.now - event.at
        if event.kind in kinds and (event.kind, event.key) not in present:
            continue  # it has been deleted since
        if event.reason == "FailedCreate" and event.key not in satisfied and ago < RECENT_S:
            confidence = Confidence.CERTAIN if ago < _EVENT_S else Confidence.LIKELY
            words.setdefault(event.key, (f"{event.kind}: {event.message}", confidence))
    for key, (text, confidence) in words.items():
        yield key, refusal(text), text, confidence


def _by(kind: Kind) -> Callable[[Facts], Iterator[Sighting]]:
    def find(facts: Facts) -> Iterator[Sighting]:
        for key, by, text, confidence in refused_owners(facts):
            if by is None or by.kind != kind:
                continue
            if not _still(facts, key, by):
                confidence = Confidence.LIKELY
            yield Sighting(
                pod=key,
                evidence=(text,),
                confidence=confidence,
                values={"name": by.name},
                explains=of_refused(key),
            )
        for name, text in _own_requests(facts, kind).items():
            yield Sighting(evidence=(text,), values={"name": name})

    return find


def _own_requests(facts: Facts, kind: Kind) -> dict[str, str]:
    """What refuses what was asked for this diagnosis, or keeps a namespace, and what says so."""
    requests: dict[str, str] = {}
    waits = [wait for terminating in facts.cluster.going for wait in terminating.waits]
    for text in (facts.cluster.error, *facts.cluster.errors.values(), *waits):
        if (by := refusal(text)) and by.kind == kind:
            requests.setdefault(by.name, text)
    return requests


def _still(facts: Facts, key: str, by: Refusal) -> bool:
    """Whether what refused pods when they were last tried is so now, where the cluster tells."""
    if by.kind == "pod-security":
        labels = facts.cluster.namespaces.get(key.partition("/")[0], {})
        return "pod-security.kubernetes.io/enforce" in labels
    return by.kind != "runtime-class" or by.name not in facts.cluster.runtimes


def unnamed_refusals(facts: Facts) -> Iterator[Sighting]:
    """Owners whose pods the API server does not take, in words that name nothing that refuses."""
    for key, by, text, _ in refused_owners(facts):
        if by is None:
            yield Sighting(
                pod=key,
                evidence=(text,),
                confidence=Confidence.LIKELY,
                explains=of_refused(key),
            )


# kind: id and meaning; a namespace that is being deleted tells of itself
_CAUSES: dict[Kind, tuple[str, str]] = {
    "webhook": (
        "webhook-refuses",
        "pods are not even made: an admission webhook refuses them",
    ),
    "silent-webhook": (
        "webhook-silent",
        "nothing of its kind is made or changed: an admission webhook that has to be asked does "
        "not answer",
    ),
    "untrusted-webhook": (
        "webhook-certificate",
        "nothing of its kind is made or changed: the API server does not trust the certificate of "
        "an admission webhook that has to be asked",
    ),
    "conversion": (
        "webhook-conversion",
        "objects of a kind cannot be read: the conversion webhook of its CustomResourceDefinition "
        "does not answer, and no namespace can be deleted",
    ),
    "busy": (
        "api-overloaded",
        "the API server refuses requests, since it has too many of them (429)",
    ),
    "policy": (
        "admission-policy",
        "pods are not even made: a ValidatingAdmissionPolicy refuses them",
    ),
    "quota": (
        "pending-quota",
        "pods are not even made: the namespace's quota is used up, or wants limits that they lack",
    ),
    "pod-security": (
        "pod-security",
        "pods are not even made: the namespace enforces a Pod Security Standard against them",
    ),
    "limit-range": (
        "limit-range",
        "pods are not even made: a LimitRange of the namespace refuses what they ask for",
    ),
    "priority-class": (
        "priority-class-missing",
        "pods are not even made: their PriorityClass does not exist",
    ),
    "runtime-class": (
        "runtime-class-missing",
        "pods are not even made: their RuntimeClass does not exist",
    ),
    "service-account": (
        "service-account-missing",
        "pods are not even made: their ServiceAccount does not exist",
    ),
}

TABLE = (
    *(
        Cause(
            id=name,
            meaning=meaning,
            find=_by(kind),
            remedy=REMEDIES[kind].action,
            command=REMEDIES[kind].command,
            # what refuses everything refuses what kubelets report as well
            explains=("node-not-ready", "namespace-terminating", *OF_PODS),
        )
        for kind, (name, meaning) in _CAUSES.items()
    ),
    Cause(
        id="pods-refused",
        meaning="pods are not even made: the API server refuses them, in its own words",
        find=unnamed_refusals,
        remedy="correct what they name: a field of the pods, a default that a LimitRange or a "
        "webhook puts into them, or rights of the controller that makes them",
        command="kubectl -n {namespace} get events --field-selector reason=FailedCreate; "
        "kubectl -n {namespace} describe limitrange",
        fallback=True,
        explains=OF_PODS,
    ),
)
