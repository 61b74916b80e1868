"""What of an earlier run still holds, so that a run that was ended goes on where it stood."""

from __future__ import annotations

from collections.abc import Sequence

from gpuboot.config.settings import Settings
from gpuboot.verify.deep.deep_answers import DeepAnswers, NodeAnswers, Step
from gpuboot.verify.deep.deep_plan import left_out
from gpuboot.verify.devices import Host


def holding(earlier: DeepAnswers, hosts: Sequence[Host], settings: Settings) -> DeepAnswers:
    """The answers that came to their end, of the GPUs that the hosts have today."""
    now = {host.node: host for host in hosts}
    uuids = {name: sorted(host.uuids) for name, host in now.items()}
    without = {*left_out(settings)}
    return DeepAnswers(
        nodes={
            name: answers
            for name, answers in earlier.nodes.items()
            if name in now
            and _is_complete(answers, without)
            and sorted(answers.uuids) == uuids[name]
        },
        pairs={
            nodes: answers
            for nodes, answers in earlier.pairs.items()
            if answers.answer.ended == "answered"
            and {*nodes} <= {*now}
            and list(answers.uuids) == [uuid for node in nodes for uuid in uuids[node]]
        },
    )


def _is_complete(answers: NodeAnswers, without: set[Step]) -> bool:
    """Whether all of its tests came to their end. + without: tests that are left out today"""
    return (
        not answers.skipped
        and bool(answers.steps)
        and all(
            answer.ended == "answered" or (answer.ended == "left out" and step in without)
            for step, answer in answers.steps.items()
        )
    )
