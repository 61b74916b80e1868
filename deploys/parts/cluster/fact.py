"""How far kubeadm got on a host, and the cluster as its leader sees it."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Sequence
from importlib import resources

from typing_extensions import override

from deploys.engine.framed import Framed
from deploys.parts.cluster import api_scripts as api
from deploys.parts.node import remains_functions as remains
from gpuboot.cluster.cluster_answers import DNS_PODS, PATHS, parse_cluster, parse_dns_nodes
from gpuboot.cluster.cluster_state import (
    ClusterState,
    KubeadmState,
    PodIssue,
    parse_etcd_health,
    parse_kubeadm,
)
from gpuboot.cluster.deprecated_apis import DeprecatedApis, parse_deprecated
from gpuboot.cluster.pod_issues import PATHS as POD_PATHS
from gpuboot.cluster.pod_issues import parse_pod_issues
from gpuboot.hosts.fact_output import Fields

# etcd's own port for metrics and health, as kubeadm's manifest and ours have it
ETCD_SCRIPT = """\
command -v curl >/dev/null || { printf 'said\tcurl is not installed\nend\tok\n'; exit 0; }
said=$(curl -q -sS --noproxy '*' --max-time 10 http://127.0.0.1:2381/health 2>&1 | tr '\n\t' '  ')
printf 'said\t%s\nend\tok\n' "$said"
"""
_SCRIPT = resources.files("deploys.parts.cluster").joinpath("fact.sh").read_text()
HOST_SCRIPT = remains.FUNCTIONS + _SCRIPT


class Kubeadm(Framed[KubeadmState]):
    """Packages, files and half-done steps of kubeadm on one host, by one command."""

    @override
    def command(self, socket: str) -> str:
        """`socket`: path of containerd's socket."""
        return f"socket={shlex.quote(socket)}\n{HOST_SCRIPT}"

    @override
    def process(self, output: list[str]) -> KubeadmState:
        return parse_kubeadm(output)


class Cluster(Framed[ClusterState]):
    """API server, nodes, workloads and GPU Operator, by one command. Read it on the leader."""

    of_cluster = True

    @override
    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        return api.command("cluster/answers.sh", kubeconfig, PATHS)

    @override
    def process(self, output: list[str]) -> ClusterState:
        return parse_cluster(output)


class PodIssues(Framed[tuple[PodIssue, ...]]):
    """Pods that are not ready, or not made. Read it on the leader.

    There are many pods, so they are read only where somebody waits for them.
    """

    of_cluster = True
    default = tuple

    @override
    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        return api.command("cluster/answers.sh", kubeconfig, POD_PATHS)

    @override
    def process(self, output: list[str]) -> tuple[PodIssue, ...]:
        return parse_pod_issues(output)


class DnsNodes(Framed[tuple[str, ...]]):
    """The node of each pod of CoreDNS. Read it on the leader."""

    of_cluster = True
    default = tuple

    @override
    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        return api.command("cluster/answers.sh", kubeconfig, [DNS_PODS])

    @override
    def process(self, output: list[str]) -> tuple[str, ...]:
        return parse_dns_nodes(output)


class CrashLogs(Framed[dict[str, list[str]]]):
    """The last lines that containers printed before they ended. Read it on the leader.

    By `namespace/pod/container`; none of those whose log cannot be had.
    """

    of_cluster = True
    default = dict

    @override
    def command(self, kubeconfig: str, containers: Sequence[str]) -> str:
        """`kubeconfig`: path of the credentials on the leader; `containers`: as above."""
        kubectl = f"kubectl --kubeconfig {shlex.quote(kubeconfig)} --request-timeout=10s"
        reads = []
        for name in containers:
            namespace, pod, container = map(shlex.quote, name.split("/"))
            log = f"{kubectl} -n {namespace} logs {pod} -c {container} --previous --tail=60"
            reads.append(
                f"printf 'log\\t%s %s\\n' {shlex.quote(name)} "
                f'"$({log} 2>/dev/null | cut -c 1-300 | base64 -w 0)"'
            )
        return "; ".join([*reads, "printf 'end\\tok\\n'"])

    @override
    def process(self, output: list[str]) -> dict[str, list[str]]:
        logs = Fields(output).pairs("log")
        return {
            name: base64.b64decode(text).decode(errors="replace").splitlines()
            for name, text in logs.items()
            if text
        }


class RequestedDeprecatedApis(Framed[DeprecatedApis]):
    """Deprecated APIs that the API server of this control-plane host has been asked for.

    Its metrics are megabytes, so they are read only where a minor release is to follow.
    """

    of_cluster = True

    @override
    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the host."""
        return api.command("cluster/deprecated_apis.sh", kubeconfig, [])

    @override
    def process(self, output: list[str]) -> DeprecatedApis:
        return parse_deprecated(output)


class EtcdHealth(Framed[str]):
    """Why etcd's member on this control-plane host is not healthy; "" when it is.

    Healthy: it has answered a read for which it needs the majority of members. etcd tells that
    beside its metrics, without credentials.
    """

    of_cluster = True
    default = str

    @override
    def command(self) -> str:
        return ETCD_SCRIPT

    @override
    def process(self, output: list[str]) -> str:
        return parse_etcd_health(output)
