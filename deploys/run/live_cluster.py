"""What preflight reads of a cluster that lives already. It changes nothing."""

from collections.abc import Sequence
from typing import Any, TypeVar

from pyinfra.api.host import Host

from deploys.engine import answers
from deploys.engine.framed import Framed
from deploys.parts.cluster.fact import Cluster, Kubeadm, RequestedDeprecatedApis
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.cluster.secrets_fact import SecretDigests
from deploys.run.context import Run
from gpuboot.cluster import deprecated_apis, version_skew
from gpuboot.cluster.cluster_state import ClusterState, stage
from gpuboot.cluster.endpoint import growth_refused
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.config.problems import Problem
from gpuboot.preflight import existing_cluster as cluster

T = TypeVar("T")


def evaluate(run: Run) -> tuple[list[Problem], list[str]]:
    """What the cluster cannot be changed to, and lines of warning. Docker hosts have none."""
    leader = next((node.host for node in run.nodes if node.leader), "")
    if leader not in run.states:
        return [], []
    host = run.inventory.get_host(leader)
    initialized = ADMIN_CONF in run.states[leader].kubeconfigs
    # what a killed kubeadm init left is reset and initialized again, as the settings are now
    if not initialized or stage(_read(host, Kubeadm, socket=SOCKET), "init") != "done":
        return [], cluster.before_the_first_run(run.settings)
    if problems := growth_refused(run.settings.cluster, run.nodes):
        return problems, []
    live_cluster = _read(host, Cluster, kubeconfig=ADMIN_CONF)
    unreachable_hosts = [
        node.host for node in run.nodes if node.role == "control_plane" and node.host in run.missing
    ]
    if live_cluster.error and unreachable_hosts:
        return [_without_majority(leader, unreachable_hosts, live_cluster.error)], []
    if live_cluster.error:
        warning = "the cluster does not answer, so the settings are not compared with it"
        return [], [f"{warning}: {live_cluster.error}"]
    problems = cluster.evaluate(run.nodes, run.settings, run.lock, live_cluster)
    needed = cluster.required_secrets(run.settings)
    keys = {
        place: tuple(_read(host, SecretDigests, namespace=place[0], secret=place[1]).keys())
        for place in needed
    }
    problems += cluster.missing_secrets(needed, keys)
    return problems, [] if problems else _before_a_minor_release(run, live_cluster)


def _without_majority(leader: str, unreachable_hosts: Sequence[str], error: str) -> Problem:
    names = ", ".join(unreachable_hosts)
    return Problem(
        leader,
        f"the cluster does not answer ({error}), and {names} cannot be reached: etcd may have lost "
        "its majority",
        f"bring {names} back; if that cannot be, restore etcd from a snapshot",
    )


def _before_a_minor_release(run: Run, live_cluster: ClusterState) -> list[str]:
    """Warnings that only the control planes can give, where the lock has a newer minor release."""
    target = run.lock.kubernetes.version
    if version_skew.planned_step(live_cluster, target) != "minor":
        return []
    hosts = [
        node.host
        for node in run.nodes
        if node.role == "control_plane"
        and node.host in run.states
        and ADMIN_CONF in run.states[node.host].kubeconfigs
    ]
    arguments = {run.inventory.get_host(host): {"kubeconfig": ADMIN_CONF} for host in hosts}
    deprecated = answers.read_each(RequestedDeprecatedApis, arguments)
    return deprecated_apis.warnings(dict(zip(hosts, deprecated, strict=True)), target)


def _read(host: Host, fact: type[Framed[T]], **arguments: Any) -> T:
    return answers.read_each(fact, {host: arguments})[0]
