"""How far kubeadm got on a host, and the cluster as its leader sees it."""

import base64
import shlex
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from deploys.engine.framed import Framed, script
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

T = TypeVar("T")

# etcd's own port for metrics and health, as kubeadm's manifest and ours have it
ETCD_SCRIPT = """\
command -v curl >/dev/null || { printf 'said\tcurl is not installed\nend\tok\n'; exit 0; }
said=$(curl -q -sS --noproxy '*' --max-time 10 http://127.0.0.1:2381/health 2>&1 | tr '\n\t' '  ')
printf 'said\t%s\nend\tok\n' "$said"
"""
HOST_SCRIPT = remains.FUNCTIONS + script("cluster/fact.sh")


class Kubeadm(Framed[KubeadmState]):
    """Packages, files and half-done steps of kubeadm on one host, by one command."""

    parse = parse_kubeadm

    def command(self, socket: str) -> str:
        """`socket`: path of containerd's socket."""
        return f"socket={shlex.quote(socket)}\n{HOST_SCRIPT}"


class ApiAnswers(Framed[T]):
    """What the API server answers to `paths`. Read it on the leader."""

    abstract = True
    of_cluster = True
    paths: ClassVar[Sequence[str]]

    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        return api.command("cluster/answers.sh", kubeconfig, self.paths)


class Cluster(ApiAnswers[ClusterState]):
    """API server, nodes, workloads and GPU Operator, by one command."""

    paths = PATHS
    parse = parse_cluster


class PodIssues(ApiAnswers[tuple[PodIssue, ...]]):
    """Pods that are not ready, or not made.

    There are many pods, so they are read only where somebody waits for them.
    """

    default = tuple
    paths = POD_PATHS
    parse = parse_pod_issues


class DnsNodes(ApiAnswers[tuple[str, ...]]):
    """The node of each pod of CoreDNS."""

    default = tuple
    paths = (DNS_PODS,)
    parse = parse_dns_nodes


class CrashLogs(Framed[dict[str, list[str]]]):
    """The last lines that containers printed before they ended. Read it on the leader.

    By `namespace/pod/container`; none of those whose log cannot be had.
    """

    of_cluster = True
    default = dict

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
    parse = parse_deprecated

    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the host."""
        return api.command("cluster/deprecated_apis.sh", kubeconfig, [])


class EtcdHealth(Framed[str]):
    """Why etcd's member on this control-plane host is not healthy; "" when it is.

    Healthy: it has answered a read for which it needs the majority of members. etcd tells that
    beside its metrics, without credentials.
    """

    of_cluster = True
    default = str
    parse = parse_etcd_health

    def command(self) -> str:
        return ETCD_SCRIPT
