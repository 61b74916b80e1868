"""The link `internode`: what NCCL between pairs of nodes says of each node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuboot.verify.checks.pod_remedies import without_answer
from gpuboot.verify.deep import nccl_tests
from gpuboot.verify.deep.deep_answers import EXIT, DeepAnswers, PairAnswer
from gpuboot.verify.deep.nccl_tests import network
from gpuboot.verify.deep.thresholds import internode_threshold
from gpuboot.verify.devices import Host
from gpuboot.verify.findings import Finding, FindingBuilder, Status

CHECK = "all_reduce_perf between two nodes"
_MISSING = re.compile(r"gpuboot: (this image has no \S+)")
_UNREACHED = re.compile(r"^ssh: connect to host (\S+) port \d+: (.+)$", re.MULTILINE)
_DAEMON_LOST = re.compile(r"^\s*Remote daemon: .* on node (\S+)", re.MULTILINE)  # of Open MPI
_NOT_JOINED = "was unable to reliably start one or more daemons"  # likewise
_BROKEN = "read the whole output in the folder `deep/pairs` of the report, and verify again"
_IMAGE = "see docs/deep.md for what the image needs"
_NETWORK = (
    "see the state and error counters of the adapters and of the switch ports of this node "
    "(`rdma link`, `ibstat`, `ethtool -S`), and by NCCL_DEBUG=INFO which of them NCCL takes"
)
_SETTING = (
    "compare it with what the network promises, and set verify.deep.internode.least_gbps to what "
    "two nodes have to reach"
)
_PEER = "see `nvidia-smi` and the kubelet's log on this node, and the network between the pods"
_HUNG = (
    "see XIDs in the kernel log (`journalctl -k -g 'NVRM: Xid'`), and whether the nodes reach each "
    "other by every adapter that NCCL takes; see verify.deep.timeout_s"
)


@dataclass(frozen=True)
class _Result:
    """What a pair says. blamed: nodes that the output itself names; none: it may be either."""

    status: Status
    text: str
    remedy: str = ""
    blamed: frozenset[str] = frozenset()


def evaluate(
    hosts: Sequence[Host], answers: DeepAnswers, least_gbps: float | None
) -> list[Finding]:
    """A finding for each node, where there are several. + least_gbps: the site's own limit"""
    nodes = [host for host in hosts if host.working]
    if len(hosts) < 2:
        return []
    hosts_by_node = {host.node: host for host in nodes}
    results = {
        pair: _judge(answer, hosts_by_node, least_gbps)
        for pair, answer in answers.pairs.items()
        if {*pair} <= {*hosts_by_node}
    }
    seconds = {pair: answer.answer.seconds for pair, answer in answers.pairs.items()}
    return [
        _of_node(
            host.node,
            results,
            FindingBuilder(
                "internode",
                CHECK,
                host.node,
                sum(seconds[pair] for pair in results if host.node in pair),
            ),
            answers,
        )
        for host in nodes
    ]


def _of_node(
    node: str,
    results: Mapping[tuple[str, str], _Result],
    builder: FindingBuilder,
    answers: DeepAnswers,
) -> Finding:
    peer_results = {_peer(pair, node): result for pair, result in results.items() if node in pair}
    if not peer_results:
        return builder.not_covered(*_untried(node, answers))
    good = [peer for peer, result in peer_results.items() if result.status == "pass"]
    bad = {
        peer: result
        for peer, result in peer_results.items()
        if result.status == "fail" and not _excused(node, peer, results)
    }
    if bad:
        detail = "; ".join(f"with {peer}: {result.text}" for peer, result in bad.items())
        return builder.failed(
            f"{detail}{_common_cause(bad, good)}", next(iter(bad.values())).remedy
        )
    unknown = {peer: result for peer, result in peer_results.items() if result.status == "unknown"}
    if unknown:
        detail = "; ".join(f"with {peer}: {result.text}" for peer, result in unknown.items())
        return builder.unknown(detail, next(iter(unknown.values())).remedy)
    if not good:
        peers = ", ".join(peer_results)
        return builder.not_covered(
            f"only tried with {peers}, which fails by itself", "mend that one, and verify again"
        )
    detail = "; ".join(f"with {peer}: {peer_results[peer].text}" for peer in good)
    other_peers = [peer for peer in peer_results if peer not in good]
    excused = f"; {', '.join(other_peers)} fails with others, too" if other_peers else ""
    return builder.passed(f"{detail}{excused}")


def _peer(pair: tuple[str, str], node: str) -> str:
    return pair[1] if pair[0] == node else pair[0]


def _excused(node: str, peer: str, results: Mapping[tuple[str, str], _Result]) -> bool:
    """Whether the failure of a pair is the peer's: the output says so, or it fails with every
    node while this one does not.
    """
    pair = next(candidate for candidate in results if {*candidate} == {node, peer})
    if results[pair].blamed:
        return node not in results[pair].blamed
    of_peer = [result for candidate, result in results.items() if peer in candidate]
    of_node = [result for candidate, result in results.items() if node in candidate]
    return (
        len(of_peer) > 1
        and all(result.status == "fail" for result in of_peer)
        and any(result.status == "pass" for result in of_node)
    )


def _common_cause(bad: Mapping[str, _Result], good: Sequence[str]) -> str:
    """What the failures have in common."""
    if any(result.blamed for result in bad.values()):
        return ""
    if good:
        return f"; with {', '.join(good)} it is sound, so it is what lies between"
    if len(bad) > 1:
        return "; it fails with every node that it was tried with"
    return "; it is either node, or what lies between"


def _untried(node: str, answers: DeepAnswers) -> tuple[str, str]:
    """Why there is no pair with a node, and what to do."""
    tested = answers.nodes.get(node)
    if tested is None:
        return "it was not tried", _BROKEN
    if tested.skipped:
        return tested.skipped, "drain the node, and verify again"
    if left_out := tested.steps.get("internode"):
        return left_out.reason, _IMAGE
    if tested.hangs:
        return "its own tests hang", "mend that first"
    return "no other node was free", "drain another node, and verify again"


def _judge(pair: PairAnswer, hosts: Mapping[str, Host], least_gbps: float | None) -> _Result:
    answer = pair.answer
    if answer.ended == "hung":
        return _Result("fail", f"it hangs: {answer.reason}", _HUNG)
    if answer.ended != "answered":
        lacks = _MISSING.search(answer.reason)
        remedy = _IMAGE if lacks else without_answer(answer.reason)
        return _Result("unknown", answer.reason, remedy)
    if lacks := _MISSING.search(answer.output):
        return _Result("unknown", lacks[1], _IMAGE)
    if failure := _lost_peer(pair):
        return failure
    try:
        measurement = nccl_tests.parse(answer.output.rpartition(EXIT)[0] or answer.output)
    except nccl_tests.NcclError as error:
        return _Result("unknown", str(error), _BROKEN)
    return _absent(pair, measurement) or _figure(pair, measurement, hosts, least_gbps)


def _lost_peer(pair: PairAnswer) -> _Result | None:
    """A peer that mpirun could not reach, or lost."""
    output = pair.answer.output
    if match := _UNREACHED.search(output):
        node = pair.hosts.get(match[1], pair.nodes[1])
        text = f"{node} does not answer by ssh: {match[2]}"
        return _Result("fail", text, _PEER, frozenset([node]))
    if match := _DAEMON_LOST.search(output):
        node = pair.hosts.get(match[1].rstrip(".,"), pair.nodes[1])
        return _Result("fail", f"mpirun lost {node}", _PEER, frozenset([node]))
    if _NOT_JOINED in output:
        return _Result("unknown", f"mpirun could not start on {pair.nodes[1]}", _BROKEN)
    return None


def _absent(pair: PairAnswer, measurement: nccl_tests.AllReduce) -> _Result | None:
    """Nodes of which not all GPUs took part."""
    counts = Counter(pair.hosts.get(host, "") for host, _ in measurement.ranks)
    short_counts = {node: counts[node] for node, count in pair.gpus.items() if counts[node] < count}
    if not short_counts or not measurement.ranks or counts[""]:
        return None
    detail = ", ".join(
        f"{node}: {count} of {pair.gpus[node]} GPUs" for node, count in short_counts.items()
    )
    return _Result("fail", f"not all GPUs took part ({detail})", _PEER, frozenset(short_counts))


def _figure(
    pair: PairAnswer,
    measurement: nccl_tests.AllReduce,
    hosts: Mapping[str, Host],
    least_gbps: float | None,
) -> _Result:
    largest = measurement.largest
    wrong_values = max(measurement.wrong or 0, sum(row.wrong or 0 for row in measurement.rows))
    if wrong_values:
        return _Result("fail", f"{wrong_values} values of the sum are wrong", _NETWORK)
    if measurement.wrong is None or largest is None:
        if measurement.problems:
            return _Result("fail", "; ".join(measurement.problems[:3]), _NETWORK)
        return _Result("unknown", "the output ends before the result", _BROKEN)
    through = network(pair.answer.output)
    figure = f"bus bandwidth {largest.busbw:.4g} GB/s by {through}"
    threshold, source = least_gbps, "verify.deep.internode.least_gbps"
    if threshold is None and (model := _model(pair.nodes, hosts)):
        published = internode_threshold(model, pair.gpus[pair.nodes[0]], through)
        threshold, source = (published.all_reduce, published.source) if published else (None, "")
    if threshold is None:
        reason = "nothing is published that two such nodes have to reach by it"
        return _Result("unknown", f"{figure}: {reason}", _SETTING)
    if largest.busbw < threshold:
        return _Result("fail", f"{figure}, below {threshold:g} ({source})", _NETWORK)
    return _Result("pass", f"{figure}, at least {threshold:g} ({source})")


def _model(nodes: Iterable[str], hosts: Mapping[str, Host]) -> str:
    """The model of all GPUs of some nodes; "" where they are not alike."""
    of = [[gpu.name for gpu in hosts[node].working] for node in nodes]
    is_uniform = len({*map(tuple, of)}) == 1 and len({*of[0]}) == 1
    return of[0][0] if is_uniform else ""
