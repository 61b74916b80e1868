"""What of an earlier run still holds, so that a run that was ended goes on where it stood."""

from __future__ import annotations

from collections.abc import Sequence

from gpuboot.config.settings import Settings
from gpuboot.verify.deep.answers import DeepAnswers, NodeAnswers, Step
from gpuboot.verify.deep.plan import left_out
from gpuboot.verify.evidence import Host


def holding(kept: DeepAnswers, hosts: Sequence[Host], settings: Settings) -> DeepAnswers:
    """The answers that came to their end, of the GPUs that the hosts have today."""
    now = {host.node: host for host in hosts}
    uuids = {name: sorted(host.uuids) for name, host in now.items()}
    without = {*left_out(settings)}
    return DeepAnswers(
        nodes={
            name: one
            for name, one in kept.nodes.items()
            if name in now and _whole(one, without) and sorted(one.uuids) == uuids[name]
        },
        pairs={
            nodes: one
            for nodes, one in kept.pairs.items()
            if one.answer.ended == "answered"
            and {*nodes} <= {*now}
            and list(one.uuids) == [uuid for node in nodes for uuid in uuids[node]]
        },
    )


def _whole(kept: NodeAnswers, without: set[Step]) -> bool:
    """Whether all of its tests came to their end. + without: tests that are left out today"""
    return (
        not kept.skipped
        and bool(kept.steps)
        and all(
            answer.ended == "answered" or (answer.ended == "left out" and step in without)
            for step, answer in kept.steps.items()
        )
    )
