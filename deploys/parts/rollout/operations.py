"""Waiting for the cluster: one operation for all that a run has applied before it."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import comparing, read
from deploys.engine.commands import Commands, executing, fail
from deploys.engine.operation import operation
from deploys.engine.waiting import remedy_of, unfinished, wait_until
from deploys.parts.cluster import deployments
from deploys.parts.cluster.api_server_fact import ApiServerLacks, RejectedReport
from deploys.parts.cluster.api_silence import explained
from deploys.parts.cluster.crash_loops import CrashLoops, remedy
from deploys.parts.cluster.fact import Cluster, DnsNodes, PodIssues
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from gpuboot.cluster import readiness
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.cluster.readiness import Part, Progress, all_of
from gpuboot.plan import Change

_REMEDY = "see `journalctl -u kubelet` and `crictl ps -a` on this host, then run again"
_DNS_S = 180
_GRACE_S = 60  # the parts know when they are late; this is for who waits for them


@operation()
def api_answers(timeout_s: float = 300) -> Commands:
    """Wait until the API server answers; changes nothing. Runs on the leader.

    After a boot, or with the kubelet started again, it takes the kubelet a while to start it.
    """
    if not executing():
        host.noop("there is nothing to wait for before the run")
        return

    def probe() -> Progress:
        look = readiness.api_answers(read(Cluster, kubeconfig=ADMIN_CONF))
        return look if look.complete else explained(look, read(ApiServerLacks, socket=SOCKET), host)

    end = wait_until(host, probe, timeout_s)
    if end.complete:
        host.noop(end.text)
        return
    yield fail(*unfinished(end, timeout_s, _REMEDY))


@operation()
def complete(
    parts: Sequence[Part],
    without: Callable[[], Sequence[str]] = list,
    own_pods: Mapping[str, Iterable[str]] | None = None,
) -> Commands:
    """Wait until all of these are ready, by one look at the cluster for all. Runs on the leader.

    A part that is not ready in its time ends the wait, with what it lacks and its own remedy, or
    what its crashing containers said; so does what cannot get ready, long before. It changes
    nothing but that pods of ours which the kubelet keeps waiting after crashes are started anew.

    + without: gives the nodes that are away or have failed: nothing of them is waited for
    + own_pods: namespace -> how names of such pods begin in it
    """
    if not executing():
        host.noop("there is nothing to wait for before the run")
        return
    started = time.monotonic()
    late: list[tuple[Part, Progress]] = []
    crashes = CrashLoops(own_pods or {})

    def probe() -> Progress:
        looks = _look(parts, without(), crashes)
        waited_s = time.monotonic() - started
        late.extend(
            (part, look)
            for part, look in looks
            if look.failed or (not look.complete and waited_s >= part.timeout_s)
        )
        return replace(all_of(*(look for _, look in looks)), failed=bool(late))

    end = wait_until(host, probe, max(part.timeout_s for part in parts) + _GRACE_S)
    if end.complete:
        host.noop(end.text)
        return
    yield _late(late, crashes) if late else _stuck(end, crashes)


def _stuck(end: Progress, crashes: CrashLoops) -> FunctionCommand:
    """The failure of a wait for what cannot get ready. + crashes: what the wait has met"""
    logs = "".join(f"\n{crashes.log(item)}" for item in crashes.causes(end.text))
    return fail(f"{end.text}{logs}", remedy_of(end, ""))


def _late(late: Sequence[tuple[Part, Progress]], crashes: CrashLoops) -> FunctionCommand:
    """The failure of parts that were not ready in their time. + crashes: what the wait has met"""
    causes = [
        look.text if look.failed else f"not done after {part.timeout_s} s: {look.text}"
        for part, look in late
    ]
    met = {item: part for part, look in late for item in crashes.causes(look.text)}
    logs = "".join(f"\n{crashes.log(item)}" for item in met)
    remedies = [
        *(remedy(item) for item in met),
        *(part.remedy for part, _ in late if part not in met.values()),
    ]
    return fail("; ".join(causes) + logs, f"{'; '.join(dict.fromkeys(remedies))}; then run again")


def _look(
    parts: Sequence[Part], without: Sequence[str], crashes: CrashLoops
) -> list[tuple[Part, Progress]]:
    state = readiness.without(read(Cluster, kubeconfig=ADMIN_CONF), without)
    looks = [(part, part.look(state)) for part in parts]
    if comparing() or state.error or all(look.complete for _, look in looks):
        return looks
    state = replace(state, pod_issues=read(PodIssues, kubeconfig=ADMIN_CONF))
    if silent := next((node.name for node in state.nodes if state.is_silent(node)), ""):
        rejection = read(RejectedReport, kubeconfig=ADMIN_CONF, node=silent)
        state = replace(state, rejection=rejection)
    state = crashes.met(host, state)
    return [(part, part.look(state)) for part in parts]


@operation()
def dns_spread() -> Commands:
    """Ensure that the pods of CoreDNS are not all on one node. Runs on the leader.

    They began when there was no other node, and nothing moves them by itself: lost with that node,
    names would not be resolved for the five minutes until the cluster makes others.
    """
    nodes = read(DnsNodes, kubeconfig=ADMIN_CONF)
    if len(nodes) < 2 or len(set(nodes)) > 1:
        host.noop("CoreDNS is not on one node alone")
        return
    subject = "Deployment kube-system/coredns"
    changes.record(Change(subject=subject, field="nodes", old=nodes[0], new="several"))
    yield StringCommand(f"{KUBECTL} -n kube-system rollout restart deployment coredns")
    yield deployments.running("kube-system/coredns", _DNS_S)
