"""Waiting for one Deployment that others need."""

from dataclasses import replace

from pyinfra.api.command import FunctionCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine.remote import read_fact
from deploys.engine.waiting import wait_or_fail
from deploys.parts.cluster.fact import Cluster, PodIssues
from deploys.parts.cluster.kubectl import ADMIN_CONF
from gpuboot.cluster.readiness import Progress, deployment_ready


def running(name: str, timeout_s: float) -> FunctionCommand:
    """The command that waits until a Deployment is rolled out. Runs on the leader.

    + name: `namespace/name`
    """
    return FunctionCommand(_running, (name, timeout_s), {})


def _running(state: State, host: Host, name: str, timeout_s: float) -> bool:
    namespace, _, deployment = name.partition("/")

    def probe() -> Progress:
        cluster = read_fact(host, Cluster, kubeconfig=ADMIN_CONF)
        look = deployment_ready(cluster, namespace, deployment)
        if look.complete or cluster.error:
            return look
        issues = read_fact(host, PodIssues, kubeconfig=ADMIN_CONF)
        return deployment_ready(replace(cluster, pod_issues=issues), namespace, deployment)

    remedy = f"see `kubectl -n {namespace} get pods,events`, then run again"
    return wait_or_fail(host, probe, timeout_s, remedy)
