"""What is in force in a cluster beside its objects: kubelets' configuration, rights, silences."""

import gzip
import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuboot.cluster.api_answers import error_message, parse_answers
from gpuboot.cluster.open_rights import PATHS, ROLES, OpenRight, open_rights
from gpuboot.hosts.fact_output import Fields

SILENCES = "/api/v2/silences"


@dataclass(frozen=True)
class InForce:
    """What the API server and what is behind it answered.

    + error: why there is no answer; "" when there is one
    + kubelets: node -> fields that its kubelet runs with, as KubeletConfiguration has them
    + silences: of Alertmanager, as its API has them
    + unanswered: what did not answer -> why: a node's name, or `Alertmanager`
    + rights: what somebody has given to everybody
    + clock: that moment by the leader's clock, in seconds since 1970
    """

    error: str = ""
    kubelets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    silences: tuple[Mapping[str, Any], ...] = ()
    unanswered: Mapping[str, str] = field(default_factory=dict)
    rights: tuple[OpenRight, ...] = ()
    clock: float = 0.0


def parse(lines: Iterable[str]) -> InForce:
    """What `deploys/parts/in_force/fact.sh` printed. Raises `FactOutputError`, ValueError."""
    output_lines = list(lines)
    values = Fields(output_lines)
    answers = parse_answers(output_lines, list(PATHS), list(ROLES))
    if answers.error:
        return InForce(answers.error)
    kubelets, silences, unanswered = {}, (), {}
    for node, status, text in values.words("kubelet", 3):
        if status == "200":
            kubelets[node] = _json(text)["kubeletconfig"]
        else:
            unanswered[node] = _failure_reason(status, text)
    for _, status, text in values.words("silences", 3):
        if status == "200":
            silences = tuple(_json(text))
        else:
            unanswered["Alertmanager"] = _failure_reason(status, text)
    return InForce(
        kubelets=kubelets,
        silences=silences,
        unanswered=unanswered,
        rights=tuple(open_rights(answers.documents)),
        clock=values.number("clock"),
    )


def _json(text: str) -> Any:
    return json.loads(gzip.decompress(b64decode(text)))


def _failure_reason(status: str, text: str) -> str:
    if status == "000":
        return "no answer within 6 s"
    body = gzip.decompress(b64decode(text)).decode(errors="replace") if text else ""
    return error_message(body) or status
