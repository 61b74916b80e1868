"""Why names are not found."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts, Host

_NAMESPACE = "kube-system"
# a question that CoreDNS had no answer to: the name, and whom it asked
_UNANSWERED = re.compile(
    r"plugin/errors: \d+ \S+ \w+: (?:.*->|dial (?:tcp|udp) )\[?(?P<server>[\da-f.:]+?)\]?:53: "
)
_MIN_LINES = 3  # one may be about a name whose own servers are slow
_LOOP = re.compile(r"Loop \([^)]*\) detected for zone")
# Kubernetes adds three to a pod's search path; glibc before 2.26 and musl read six of them, 32 is
# the kubelet's limit (kubernetes v1.36, pkg/apis/core/validation: MaxDNSSearchPaths)
_CLUSTER_DOMAINS, _MAX_DOMAINS, _MOST_LENGTH = 3, 32, 2048
_MOST_SERVERS = 3
_LIMITS = "DNSConfigForming"


def coredns_not_ready(facts: Facts) -> Iterator[Sighting]:
    for workload in facts.cluster.workloads:
        if (
            workload.kind != "Deployment"
            or workload.key != f"{_NAMESPACE}/coredns"
            or workload.ready > 0
        ):
            continue
        pods = [pod for pod in facts.cluster.pods if pod.labels.get("k8s-app") == "kube-dns"]
        evidence = [f"Deployment coredns: {workload.ready} of {workload.desired} pods ready"]
        if not workload.desired:
            evidence.append("it is scaled to 0")
        for pod in pods:
            evidence += facts.cluster.log(pod, "ERROR", "FATAL", "Error", "Still waiting")[-1:]
            evidence += [pod.waits] if pod.waits else []
        yield Sighting(evidence=tuple(dict.fromkeys(evidence))[:4])


def dns_loop(facts: Facts) -> Iterator[Sighting]:
    for pod in facts.cluster.pods:
        if pod.labels.get("k8s-app") != "kube-dns" or pod.ready:
            continue
        if lines := [line for line in facts.cluster.log(pod, "Loop (") if _LOOP.search(line)]:
            host = next((candidate for candidate in facts.read if candidate.node == pod.node), None)
            files = (
                [
                    f"{host.details.resolv_file}: {line}"
                    for line in host.details.resolv
                    if "127." in line
                ]
                if host
                else []
            )
            # a Corefile that forwards to CoreDNS itself makes a loop as well
            confidence = Confidence.CERTAIN if files else Confidence.LIKELY
            evidence = (lines[-1], *files)
            yield Sighting(node=pod.node, pod=pod.key, evidence=evidence, confidence=confidence)


def dns_upstream(facts: Facts) -> Iterator[Sighting]:
    """CoreDNS runs, and those that it asks for other names do not answer it."""
    for pod in facts.cluster.pods:
        if pod.labels.get("k8s-app") != "kube-dns":
            continue
        lines_by_server: dict[str, list[str]] = {}
        for line in facts.cluster.log(pod, "plugin/errors"):
            if match := _UNANSWERED.search(line):
                lines_by_server.setdefault(match["server"], []).append(line)
        host = next((host for host in facts.read if host.node == pod.node), None)
        for server, lines in lines_by_server.items():
            if len(lines) < _MIN_LINES:
                continue
            evidence = (
                f"{server} did not answer {len(lines)} questions, the last: {lines[-1]}",
                *(_named_elsewhere(host, server) if host else []),
            )
            yield Sighting(
                node=pod.node, pod=pod.key, evidence=evidence, confidence=Confidence.LIKELY
            )


def _named_elsewhere(host: Host, server: str) -> list[str]:
    """The evidence that a server is not named by the node's resolv.conf; nothing where it is."""
    servers = [line.split()[-1] for line in _servers(host)]
    text = f"{host.details.resolv_file} of {host.node} names {', '.join(servers)}"
    return [text] if servers and server not in servers else []


def dns_search_path(facts: Facts) -> Iterator[Sighting]:
    """Too many domains or servers, or a wildcard: what is beyond the limit is left out."""
    for host in facts.read:
        domains = [
            word
            for line in host.details.resolv
            if line.startswith("search")
            for word in line.split()[1:]
        ]
        servers = _servers(host)
        evidence = []
        if (
            len(domains) + _CLUSTER_DOMAINS > _MAX_DOMAINS
            or len(" ".join(domains)) > _MOST_LENGTH - 128
        ):
            evidence.append(f"{host.details.resolv_file}: {len(domains)} search domains")
        if len(servers) > _MOST_SERVERS:
            evidence.append(f"{host.details.resolv_file}: {len(servers)} name servers, 3 are used")
        # what the kubelet said of a file that is in order now, it said before that was mended
        messages = [] if host.details.resolv and not evidence else _limit_messages(facts, host.node)
        if evidence or messages:
            confidence = Confidence.CERTAIN if evidence else Confidence.LIKELY
            yield Sighting(
                node=host.node,
                evidence=(*evidence, *messages[-1:]),
                confidence=confidence,
                values={"file": host.details.resolv_file or "/etc/resolv.conf"},
            )


def _servers(host: Host) -> list[str]:
    return [line for line in host.details.resolv if line.startswith("nameserver")]


def _limit_messages(facts: Facts, node: str) -> list[str]:
    """What a kubelet says of its pods' names."""
    return [
        event.message
        for pod in facts.cluster.pods
        if pod.node == node
        for event in facts.cluster.events_of(pod.key, _LIMITS)
    ]


TABLE = (
    Cause(
        id="coredns-not-ready",
        meaning="no pod of CoreDNS is ready: no name is found in the cluster",
        find=coredns_not_ready,
        remedy="scale it up where it is at 0; else read what its pods say",
        command="kubectl -n kube-system scale deployment/coredns --replicas=2; "
        "kubectl -n kube-system logs -l k8s-app=kube-dns --tail=20 --ignore-errors",
        explains=("operator-crash-loop", "pod-crash-loop", "prometheus-target-down"),
    ),
    Cause(
        id="dns-loop",
        meaning="CoreDNS asks itself: the node's resolv.conf names a server on the node",
        find=dns_loop,
        remedy='set cluster.kubelet = {"resolvConf": FILE}, FILE being one of these that names no '
        "server on the node, and run deploys/site.py; then start CoreDNS anew (kubectl -n "
        "kube-system rollout restart deployment/coredns)",
        command="grep -H ^nameserver $(ls /run/systemd/resolve/resolv.conf "
        "/run/NetworkManager/no-stub-resolv.conf /etc/resolv.conf 2>/dev/null)",
        on="node",
        explains=("coredns-not-ready", "pod-crash-loop"),
    ),
    Cause(
        id="dns-upstream",
        meaning="CoreDNS gets no answer about names outside of the cluster from whom it asks",
        find=dns_upstream,
        remedy="correct `forward` in its Corefile, where that names the server, or the node's "
        "resolv.conf; else see why the server does not answer the node's pods",
        command="kubectl -n kube-system get configmap coredns -o jsonpath='{{.data.Corefile}}'",
        explains=("pod-crash-loop",),
    ),
    Cause(
        id="dns-search-path",
        meaning="resolv.conf has more search domains or servers than pods may have",
        find=dns_search_path,
        remedy="shorten it on the node, and start the pods anew",
        command="grep -nE '^(search|nameserver)' {file}",
        on="node",
    ),
)
