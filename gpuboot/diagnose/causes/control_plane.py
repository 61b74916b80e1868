"""Why the API server does not answer, or not everybody."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuboot.diagnose.facts import Facts, Host
from gpuboot.diagnose.model import Cause, Confidence, Sighting

# of curl: the server is there, and what it says of anonymous questions
_ANSWERS = ("200", "401", "403")
# lines of etcd and of Kubernetes' components that complain of nothing
_INFO = re.compile(r'"level":"info"|stderr F I\d{4} ')
_UNREACHED = ("dial tcp", "i/o timeout", "no route to host", "connection refused")
_CODES = {"6": "no such name", "7": "connection refused", "28": "timed out", "35": "TLS failed"}
# pods that ask the API server by its Service's address
_ASKING = ("coredns", "gpu-operator-", "kube-prometheus-stack-operator", "kube-state-metrics")


def _answers(host: Host) -> bool:
    return host.details.api in _ANSWERS


def _how(host: Host) -> str:
    code = host.details.api.partition(" ")[0]
    said = _CODES.get(
        code, f"curl's exit code {code}" if " " in host.details.api else f"HTTP {code}"
    )
    return f"{host.details.server}/livez from {host.node}: {said}"


def api_server_down(facts: Facts) -> Iterator[Sighting]:
    """It answers on no control plane; the hosts' facts alone tell why."""
    controls = [host for host in facts.read if host.role == "control_plane" and host.details.api]
    if not controls or any(map(_answers, controls)):
        return
    if not facts.cluster.error and not any(" " in host.details.api for host in controls):
        return  # it says that it is not well, and answers: it is busy, or starts
    for host in controls:
        seen = [_how(host)]
        seen += [
            f"/etc/kubernetes/manifests/{part}.yaml is missing" for part in host.details.no_manifest
        ]
        for part in ("kube-apiserver", "etcd"):
            lines = [line for line in host.details.logs.get(part, ()) if not _INFO.search(line)]
            seen += [f"{part}: {line}" for line in lines[-1:]]
        if facts.cluster.error:
            seen.append(f"asked through {facts.leader or host.node}: {facts.cluster.error}")
        yield Sighting(node=host.node, evidence=tuple(seen))


def api_firewalled(facts: Facts) -> Iterator[Sighting]:
    """Some hosts reach the API server, and others do not."""
    controls = [host for host in facts.read if host.role == "control_plane"]
    if not any(map(_answers, controls)):
        return
    rules = {host.node: host.details.firewall for host in facts.read}
    # an HTTP status is an answer, be it 500
    shut = [host for host in facts.read if " " in host.details.api]
    for host in shut:
        named = [
            f"{node}: {line}"
            for node, lines in rules.items()
            for line in lines
            if node == host.node or any(node == one.node for one in controls)
        ]
        seen = (_how(host), f"{facts.leader or controls[0].node} itself answers", *named[:3])
        sure = Confidence.CERTAIN if named else Confidence.LIKELY
        yield Sighting(node=host.node, evidence=seen, confidence=sure)


def api_from_pods(facts: Facts) -> Iterator[Sighting]:
    """The node reaches the API server, its pods do not."""
    reached = {host.node for host in facts.read if _answers(host)}
    for pod in facts.cluster.pods:
        if pod.node not in reached or pod.ready or not pod.name.startswith(_ASKING):
            continue
        lines = [line for line in facts.cluster.log(pod, *_UNREACHED) if ":443" in line]
        if lines:
            seen = (lines[-1], f"{pod.node} itself reaches the API server")
            yield Sighting(node=pod.node, pod=pod.key, evidence=seen, confidence=Confidence.LIKELY)


TABLE = (
    Cause(
        id="api-server-down",
        meaning="the API server does not answer, not even on the control plane itself",
        find=api_server_down,
        remedy="read what kube-apiserver and etcd said last; the kubelet starts both",
        command="sudo crictl ps -a | grep -E 'kube-apiserver|etcd'; "
        "sudo sh -c 'tail -n 20 /var/log/pods/kube-system_kube-apiserver-*/*/*.log'",
        on="node",
        explains=("node-not-ready", "coredns-not-ready"),
    ),
    Cause(
        id="api-firewalled",
        meaning="the API server is well, and a firewall or the network keeps nodes from it",
        find=api_firewalled,
        remedy="allow TCP 6443 to the control planes from every node",
        command="sudo nft list ruleset | grep -nE 'dport.*6443'; sudo iptables -S | grep 6443",
        on="node",
        explains=(
            "node-not-ready",
            "api-from-pods",
            "coredns-not-ready",
            "pod-crash-loop",
            "prometheus-target-down",
            "operand-desired-zero",
            "pending-taint",
        ),
    ),
    Cause(
        id="api-from-pods",
        meaning="pods do not reach the API server, although their node does",
        find=api_from_pods,
        remedy="look at kube-proxy, at rules that forward pod addresses, and at the pod network",
        command="kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy; "
        "ssh {node} 'sysctl net.ipv4.ip_forward; sudo nft list ruleset | grep -c 10.96.0.1'",
        explains=("coredns-not-ready", "operator-crash-loop", "pod-crash-loop"),
    ),
)
