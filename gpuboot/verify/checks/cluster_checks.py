"""The links of `of_cluster`: what the API answered to each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from gpuboot.verify.checks.one_file import Answer, CheckVerdict, ClusterCheck
from gpuboot.verify.checks.one_file_checks import CLUSTER_CHECKS
from gpuboot.verify.findings import Finding, from_file

_ASK_MANUALLY = "ask by hand, on a control plane: `kubectl get --raw {}`"


def evaluate(answers: Mapping[str, Answer] | None) -> list[Finding]:
    """The findings; none where nobody asked. + answers: by the link's name"""
    if answers is None:
        return []
    return [
        from_file(check.link, verdict, verdict.node)
        for check in CLUSTER_CHECKS
        for verdict in _verdicts(
            check, answers.get(check.link.name, Answer(error="it was not asked"))
        )
    ]


def _verdicts(check: ClusterCheck, answer: Answer) -> Iterable[CheckVerdict]:
    error = answer.error
    if not error:
        try:
            return list(check.evaluate(json.loads(answer.body)))
        except (ValueError, LookupError, TypeError, AttributeError) as wrong:
            start = answer.body[:60].decode(errors="replace")
            error = f"an answer of another shape ({wrong!r}): {start!r}"
    return [CheckVerdict(status="unknown", detail=error, remedy=_ASK_MANUALLY.format(check.path))]
