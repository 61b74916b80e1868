"""What a cluster of gpuboot must have and has not, and namespaces that do not go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuboot.cluster.managed_objects import Key
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts
from gpuboot.monitoring.components import STATIC_PODS

_FOLLOW = (
    ("coredns|kube-dns", ("coredns-not-ready",)),
    (
        "nvidia|gpu",
        (
            *("device-plugin-missing", "gpu-unhealthy", "operand-unlabelled"),
            *("operator-crash-loop", "pending-resource"),
        ),
    ),
    ("flannel|kube-proxy", ("pod-network-missing",)),
    ("prometheus|monitoring", ("prometheus-down", "service-monitor-missing")),
    ("ServiceAccount", ("service-account-missing",)),
    ("Role", ("rights-missing",)),
    ("PriorityClass", ("priority-class-missing",)),
    ("RuntimeClass", ("runtime-class-missing",)),
    (
        "",
        ("pod-crash-loop", "pod-not-ready", "prometheus-target-down", "api-extension-unavailable"),
    ),
)
ALL = tuple(dict.fromkeys(cause for _, causes in _FOLLOW for cause in causes))
# of pods that are refused: no absence that a refusal tells of
OF_PODS = tuple(
    cause for cause in ALL if not cause.endswith(("-class-missing", "-account-missing"))
)


def followers(*names: str) -> tuple[str, ...]:
    """Ids of the causes that may follow from these objects' absence. + names: kind, path or both"""
    text = " ".join(names)
    return tuple(cause for part, causes in _FOLLOW if re.search(part, text) for cause in causes)


def of_refused(owner: str) -> tuple[str, ...]:
    """Ids of what may follow where pods are refused; () where no part of the cluster makes them.

    + owner: of the pods, as `namespace/name`
    """
    causes, of_any = followers(owner), _FOLLOW[-1][1]
    return causes if len(causes) > len(of_any) else ()


_MAX_SHOWN = 12
_GOES_S = 60.0  # a namespace may take that long to be deleted
_RERUN = "run deploys/site.py, which makes it again"
_RUN = "pyinfra INVENTORY deploys/site.py"


def _name(item: Key) -> str:
    kind, namespace, name = item
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _lines(names: list[str]) -> tuple[str, ...]:
    remaining = len(names) - _MAX_SHOWN
    lines = [f"{name}: there is none" for name in names[:_MAX_SHOWN]]
    return (*lines, *([f"and {remaining} more"] if remaining > 0 else []))


def component(facts: Facts) -> Iterator[Sighting]:
    missing = [item for item in facts.cluster.missing.objects if item[0] != "Pod"]
    if names := sorted(map(_name, missing)):
        yield Sighting(evidence=_lines(names), explains=followers(*names))


def definition(facts: Facts) -> Iterator[Sighting]:
    if names := facts.cluster.missing.definitions:
        lines = _lines([f"CustomResourceDefinition {name}" for name in names])
        yield Sighting(evidence=lines, explains=followers(*names))


def release(facts: Facts) -> Iterator[Sighting]:
    if names := facts.cluster.missing.releases:
        lines = _lines([f"Helm release {name}" for name in names])
        yield Sighting(evidence=lines, explains=followers(*names))


def static_pod(facts: Facts) -> Iterator[Sighting]:
    """A part of a control plane whose manifest is gone, or whose kubelet does not start it."""
    names = {node.name for node in facts.cluster.nodes}
    for kind, namespace, name in facts.cluster.missing.objects:
        part = next(
            (candidate for candidate in STATIC_PODS if name.startswith(f"{candidate}-")), ""
        )
        node = name.removeprefix(f"{part}-")
        if kind != "Pod" or node not in names:
            continue
        host = next((candidate for candidate in facts.read if candidate.node == node), None)
        no_manifest = host is not None and part in host.details.no_manifest
        evidence = [f"Pod {namespace}/{name}: there is none"]
        if no_manifest:
            evidence.append(f"/etc/kubernetes/manifests/{part}.yaml is missing")
        phase = "etcd local" if part == "etcd" else f"control-plane {part.removeprefix('kube-')}"
        yield Sighting(
            node=node,
            evidence=tuple(evidence),
            confidence=Confidence.CERTAIN if no_manifest else Confidence.LIKELY,
            values={"phase": phase},
        )


def namespace(facts: Facts) -> Iterator[Sighting]:
    for terminating in facts.cluster.going:
        age = facts.cluster.now - terminating.since
        evidence = [
            f"Namespace {terminating.name}: Terminating for {age:.0f} s",
            *terminating.waits,
        ]
        if terminating.finalizers:
            evidence.append(f"finalizers of its own: {', '.join(terminating.finalizers)}")
        confidence = Confidence.CERTAIN if age > _GOES_S else Confidence.LIKELY
        missing = facts.cluster.missing
        spaces_by_cause = {
            "component-missing": {space for _, space, _ in missing.objects},
            "release-missing": {name.partition("/")[0] for name in missing.releases},
        }
        inside = (cause for cause, spaces in spaces_by_cause.items() if terminating.name in spaces)
        explains = (*followers(terminating.name), *inside)
        yield Sighting(
            evidence=tuple(evidence),
            confidence=confidence,
            values={"going": terminating.name},
            explains=explains,
        )


TABLE = (
    Cause(
        id="component-missing",
        meaning="something that the cluster consists of is not there: it was deleted",
        find=component,
        remedy=_RERUN,
        command=_RUN,
        on="here",
        explains=ALL,
    ),
    Cause(
        id="definition-missing",
        meaning="the API server does not know a kind of objects any more, so all of them are gone",
        find=definition,
        remedy="run deploys/site.py, which makes definition and objects again; objects of your own "
        "of that kind are lost",
        command=_RUN,
        on="here",
        explains=ALL,
    ),
    Cause(
        id="release-missing",
        meaning="Helm has no record of a release that the settings ask for",
        find=release,
        remedy="run deploys/site.py, which installs it, and takes over what is still there",
        command=_RUN,
        on="here",
        explains=ALL,
    ),
    Cause(
        id="static-pod-missing",
        meaning="a part of the control plane does not run on a control-plane node",
        find=static_pod,
        remedy="where its manifest is gone, run deploys/site.py, which makes it again (by hand on "
        "the first control plane: as below); else see why the kubelet does not start it "
        "(journalctl -u kubelet)",
        command="sudo kubeadm init phase {phase} --config /etc/gpuboot/kubeadm.yaml",
        on="node",
        explains=("control-plane-part-failing", *ALL),
    ),
    Cause(
        id="namespace-terminating",
        meaning="a namespace is being deleted and does not go: nothing can be made in it",
        find=namespace,
        remedy="let the controller that the finalizers name do its work; where it is gone for "
        "good, take them off the objects. Once the namespace is gone, deploys/site.py makes it and "
        "its contents again, where they are gpuboot's",
        command="kubectl get namespace {going} -o jsonpath='{{.status.conditions}}'; "
        "kubectl -n {going} get all,configmaps,secrets,pvc",
        explains=("component-missing", "release-missing", *ALL),
    ),
)
