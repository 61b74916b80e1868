"""Why the API server does not answer, or not everybody."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from gpuboot.diagnose import log_lines as lines
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.causes.pods_causes import failing, how_it_ended
from gpuboot.diagnose.facts import RECENT_S, Facts, Host
from gpuboot.hosts.packet_verdict import Flow, judge

# of curl: the server is there, and what it says of anonymous questions
_ANSWERS = ("200", "401", "403")
_UNREACHED = ("dial tcp", "i/o timeout", "no route to host", "connection refused")
_NO_NAME, _CONNECTION_REFUSED, _TIMED_OUT = "6", "7", "28"
_CODES = {
    _NO_NAME: "no such name",
    _CONNECTION_REFUSED: "connection refused",
    _TIMED_OUT: "timed out",
    "35": "TLS failed",
}
_PARTS = ("kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler")
# pods that ask the API server by its Service's address
_ASKING = ("coredns", "gpu-operator-", "kube-prometheus-stack-operator", "kube-state-metrics")
_SLOW = ("slow fdatasync", "apply request took too long")
_TRIES_S = 45.0
_NETWORK = ("kube-proxy-", "kube-flannel-")


def _answers(host: Host) -> bool:
    return host.details.api in _ANSWERS


def _code(host: Host) -> str:
    """The exit code of a curl that got no answer; "" where it got one, be it 500."""
    code, _, status = host.details.api.partition(" ")
    if not status:
        return ""
    # with name servers that do not answer either, curl says that the time was over
    return _NO_NAME if host.details.unresolved else code


def _describe_probe(host: Host) -> str:
    code = _code(host)
    plain = f"curl's exit code {code}" if code else f"HTTP {host.details.api}"
    return f"{host.details.server}/livez from {host.node}: {_CODES.get(code, plain)}"


def _controls(facts: Facts) -> list[Host]:
    return [host for host in facts.read if host.role == "control_plane"]


def api_server_down(facts: Facts) -> Iterator[Sighting]:
    """The API server answers on no control plane; the hosts' facts alone tell why."""
    controls = [host for host in _controls(facts) if host.details.api]
    if not controls or any(map(_answers, controls)):
        return
    if not facts.cluster.error and not any(map(_code, controls)):
        return  # it says that it is not well, and answers: it is busy, or starts
    for host in controls:
        evidence = [_describe_probe(host)]
        evidence += [
            f"/etc/kubernetes/manifests/{part}.yaml is missing" for part in host.details.no_manifest
        ]
        for part in _PARTS[:2]:
            evidence += [f"{part}: {line}" for line in part_last_words(host, part)]
        evidence += _etcd_health(host)
        evidence += [f"kubelet: {line}" for line in host.log("kubelet", "manifest")[-1:]]
        if facts.cluster.error:
            evidence.append(f"asked through {facts.leader or host.node}: {facts.cluster.error}")
        # a name that is not known there says nothing of the server behind it
        confidence = Confidence.POSSIBLE if _code(host) == _NO_NAME else Confidence.CERTAIN
        yield Sighting(node=host.node, evidence=tuple(evidence), confidence=confidence)


def _etcd_health(host: Host) -> list[str]:
    """What an etcd says that is not well; that its disk is slow is a warning."""
    if '"health":"false"' not in host.details.etcd:
        return []
    slow = [line for line in host.details.logs.get("etcd", ()) if any(map(line.count, _SLOW))]
    return [f"etcd: {host.details.etcd}", *(f"etcd: {line}" for line in slow[-1:])]


def part_last_words(host: Host, part: str) -> list[str]:
    """What a part of the control plane said last, as the host's files have it."""
    log_lines = host.details.logs.get(part, ())
    now = host.details.now
    return lines.last_words(line for line in log_lines if lines.present(line.at, now, RECENT_S))


def _shut(facts: Facts, *codes: str) -> list[Host]:
    """The hosts that get no answer, while a control plane gets one itself."""
    if not any(map(_answers, _controls(facts))):
        return []
    return [host for host in facts.read if (code := _code(host)) and (code in codes or not codes)]


def api_name(facts: Facts) -> Iterator[Sighting]:
    """The name by which nodes know the API server is not found on some of them."""
    for host in _shut(facts, _NO_NAME):
        name = urlsplit(host.details.server).hostname or ""
        names = [line for line in host.details.resolv if line.startswith("nameserver")]
        resolver = f"{host.details.resolv_file}: {', '.join(names) or 'no nameserver'}"
        yield Sighting(
            node=host.node, evidence=(_describe_probe(host), resolver), values={"server": name}
        )


def _drops(facts: Facts, host: Host) -> list[str]:
    """The rules, of this host and of the control planes, that drop its way to the API server."""
    target = urlsplit(host.details.server)
    try:
        way = ipaddress.ip_network(host.details.server_address or target.hostname or "")
    except ValueError:  # any address
        way = None
    source = ipaddress.ip_network(host.state.default_address) if host.state else None
    version = way.version if way else 4
    port = target.port or 6443
    labels = []
    for machine in (host, *(item for item in _controls(facts) if item is not host)):
        if machine.state is None:
            continue
        flow = Flow("output" if machine is host else "input", version, "tcp", port, source, way)
        drop = judge(machine.state.packet_filter, flow).drop
        labels += [f"{machine.node}: {drop.label}"] if drop else []
    return labels


def api_firewalled(facts: Facts) -> Iterator[Sighting]:
    """Hosts do not reach the API server: a rule drops them, or nothing answers."""
    controls = _controls(facts)
    for host in _shut(facts, _CONNECTION_REFUSED, _TIMED_OUT):
        rules = _drops(facts, host)
        if not rules and _code(host) == _CONNECTION_REFUSED:
            continue  # somebody answers that nobody listens
        itself = f"{facts.leader or controls[0].node} itself answers"
        yield Sighting(
            node=host.node,
            evidence=(_describe_probe(host), itself, *rules[:3]),
            confidence=Confidence.CERTAIN if rules else Confidence.LIKELY,
        )


def api_unreached(facts: Facts) -> Iterator[Sighting]:
    for host in _shut(facts):
        yield Sighting(
            node=host.node,
            evidence=(_describe_probe(host), "a control plane itself answers"),
            confidence=Confidence.POSSIBLE,
            values={"server": host.details.server},
        )


def api_from_pods(facts: Facts) -> Iterator[Sighting]:
    """The node reaches the API server, its pods do not: they say so again and again."""
    reached = {host.node for host in facts.read if _answers(host)}
    cluster = facts.cluster
    started = max(
        (candidate.started for candidate in cluster.pods if candidate.name.startswith(_PARTS[0])),
        default=0,
    )
    for pod in cluster.pods:
        if pod.node not in reached or pod.ready or not pod.name.startswith(_ASKING):
            continue
        network = (
            candidate.started
            for candidate in cluster.pods
            if candidate.node == pod.node and candidate.name.startswith(_NETWORK)
        )
        since = max([started, *network])
        failures = [
            line
            for line in cluster.log(pod, *_UNREACHED)
            if ":443" in line
            and (line.at is None or (line.at > since and cluster.present(line.at)))
        ]
        if failures:
            at = failures[-1].at
            ago = "" if at is None else f"{cluster.now - at:.0f} s ago: "
            evidence = (f"{ago}{failures[-1]}", f"{pod.node} itself reaches the API server")
            # a container that waits for its next start has not tried since
            now = lines.present(at, cluster.now, _TRIES_S)
            confidence = Confidence.LIKELY if now else Confidence.POSSIBLE
            yield Sighting(node=pod.node, pod=pod.key, evidence=evidence, confidence=confidence)


def part_failing(facts: Facts) -> Iterator[Sighting]:
    """A static pod of the control plane ends again and again, and the API server answers."""
    for pod in facts.cluster.pods:
        part = next((name for name in _PARTS if pod.name.startswith(f"{name}-")), "")
        if pod.namespace != "kube-system" or not part or pod.ready:
            continue
        if container := failing(facts, pod):
            last = lines.last_words(facts.cluster.log(pod, ""))
            yield Sighting(node=pod.node, pod=pod.key, evidence=(how_it_ended(container), *last))


TABLE = (
    Cause(
        id="api-server-down",
        meaning="the API server does not answer, not even on the control plane itself",
        find=api_server_down,
        remedy="where a manifest is missing, run deploys/site.py, which makes it again; else read "
        "what kube-apiserver and etcd said last; the kubelet starts both",
        command="sudo crictl ps -a --name 'kube-apiserver|etcd'; sudo find /var/log/pods/ "
        "-path '*kube-apiserver*.log' -size +0 -exec tail -n 20 {{}} +",
        on="node",
        explains=("node-not-ready", "coredns-not-ready", "control-plane-part-failing"),
    ),
    Cause(
        id="api-name",
        meaning="a node does not find the address of the API server's name",
        find=api_name,
        remedy="put the name into its /etc/hosts, which deploys/site.py does, or mend its name "
        "server",
        command="getent hosts {server} || grep -n . /etc/hosts /etc/resolv.conf",
        on="node",
        explains=(
            *("node-not-ready", "pod-crash-loop", "prometheus-target-down"),
            *("operand-desired-zero", "pending-taint", "api-server-down"),
        ),
    ),
    Cause(
        id="api-firewalled",
        meaning="the API server is well, and a firewall or the network keeps nodes from it",
        find=api_firewalled,
        remedy="allow TCP 6443 to the control planes from every node",
        command="sudo nft list ruleset | grep -nE 'hook|policy drop|6443'",
        on="node",
        explains=(
            "node-not-ready",
            "api-from-pods",
            "api-extension-unavailable",
            "coredns-not-ready",
            "pod-crash-loop",
            "prometheus-target-down",
            "operand-desired-zero",
            "pending-taint",
        ),
    ),
    Cause(
        id="api-unreached",
        meaning="the API server is well, and a node does not reach it; why is not known",
        find=api_unreached,
        remedy="see what answers at that address, and whether the node has a route to it",
        command="curl -kv --max-time 10 {server}/livez",
        on="node",
        fallback=True,
        explains=("node-not-ready", "pod-crash-loop", "prometheus-target-down"),
    ),
    Cause(
        id="api-from-pods",
        meaning="pods do not reach the API server, although their node does",
        find=api_from_pods,
        remedy="look at kube-proxy, at rules that forward pod addresses, and at the pod network",
        command="kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy; "
        "kubectl -n kube-system logs -l k8s-app=kube-proxy --tail=20",
        explains=(
            *("coredns-not-ready", "operator-crash-loop", "pod-crash-loop"),
            "api-extension-unavailable",
        ),
    ),
    Cause(
        id="control-plane-part-failing",
        meaning="a part of the control plane ends again and again",
        find=part_failing,
        remedy="correct what its last line names, in its file in /etc/kubernetes/manifests there",
        command="kubectl -n {namespace} logs {name} --previous --tail=20",
        explains=("pod-crash-loop", "prometheus-target-down"),
    ),
)
