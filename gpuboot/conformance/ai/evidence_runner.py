"""Looks for the evidence step by step, and removes what it made however it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.settings import Settings
from gpuboot.conformance.ai import component_steps, evidence_steps, service
from gpuboot.conformance.ai.evidence_requirements import REQUIREMENTS
from gpuboot.conformance.ai.evidence_results import Outcome, Result
from gpuboot.conformance.ai.evidence_site import Site, Stopped
from gpuboot.conformance.ai.service import LABELS
from gpuboot.verify.load.load_pods import START_S
from gpuboot.verify.prometheus import PrometheusError
from gpuboot.verify.session import Namespace, Session

PREFIX = "gpuboot-ai-conformance-"
_NO_STEP = "gpuboot has no evidence for it"


@dataclass(frozen=True)
class _Step:
    """A step, and the requirements that it is about."""

    run: Callable[[Site], list[Result]]
    names: tuple[str, ...]


_STEPS = (
    _Step(evidence_steps.what_is_served, ("dra_support", "cluster_autoscaling")),
    _Step(
        evidence_steps.gpu_access,
        ("secure_accelerator_access", "driver_runtime_management", "gpu_sharing"),
    ),
    _Step(evidence_steps.metrics_under_load, ("accelerator_metrics",)),
    _Step(evidence_steps.service_metrics, ("ai_service_metrics",)),
    _Step(component_steps.gang_and_controller, ("gang_scheduling", "robust_controller")),
    _Step(component_steps.inference, ("ai_inference",)),
    _Step(component_steps.scaling, ("pod_autoscaling",)),
)


def run(
    cluster: Cluster,
    names: Sequence[str],
    settings: Settings,
    image: str,
    progress: Callable[[str], None],
    stopped: Callable[[], bool],
) -> Outcome:
    """All evidence of a cluster.

    + names: of its GPU nodes
    + image: with busybox
    + stopped: whether it is to end now

    Raises `ClusterError`.
    """
    version, started = cluster.json("/version")["gitVersion"], cluster.now().isoformat()
    session = Session(cluster, progress, START_S, Namespace(PREFIX, LABELS))
    site = Site(cluster, session, settings, names, image, progress, stopped)
    try:
        if blocked := session.begin(settings.verify.timeout_s):
            return Outcome(error=f"{blocked}\n    remedy: run it again when that has ended")
        component_steps.remove_cluster_objects(cluster)
        session.create([service.pod(image)])
        return Outcome(_results(site), version, started)
    except Stopped:
        return Outcome(kubernetes=version, started=started, stopped=True)
    finally:
        progress(f"removing {session.namespace}")
        session.close()
        component_steps.remove_cluster_objects(cluster)


def _results(site: Site) -> tuple[Result, ...]:
    """Run all steps; the results in the programme's order, `not_run` for what no step is about."""
    by_id: dict[str, Result] = {}
    for step in _STEPS:
        if site.stopped():
            raise Stopped
        for result in _run_step(step, site):
            by_id[result.id] = result
            site.progress(f"{result.id}: {result.status}: {result.summary}")
    return tuple(by_id.get(name, Result(name, "not_run", _NO_STEP)) for name in REQUIREMENTS)


def _run_step(step: _Step, site: Site) -> list[Result]:
    """The step's results; what keeps one from its end says nothing of others."""
    try:
        return step.run(site)
    except (ClusterError, PrometheusError, KeyError, ValueError) as error:
        text = f"{type(error).__name__}: {error}"
        remedy = "`gpuboot verify` says what of the cluster does not answer"
        return [Result(name, "not_run", text, remedy=remedy) for name in step.names]
