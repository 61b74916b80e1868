"""Waiting for one Deployment that others need."""

from dataclasses import replace

from pyinfra.api.command import FunctionCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine.commands import failure, report_failure
from deploys.engine.remote import RemoteError, read_fact
from deploys.engine.waiting import remedy_of, unfinished, wait_until
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

    try:
        end = wait_until(host, probe, timeout_s)
    except RemoteError as error:
        return report_failure(host, failure(str(error), "run again"))
    if end.complete:
        return True
    remedy = remedy_of(end, f"see `kubectl -n {namespace} get pods,events`, then run again")
    return report_failure(host, failure(unfinished(end, timeout_s), remedy))
