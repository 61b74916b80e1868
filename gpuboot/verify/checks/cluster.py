"""The links of `of_cluster`: what the API answered to each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from gpuboot.verify.checks.cluster_check import Answer, ClusterCheck
from gpuboot.verify.checks.one_file import Says
from gpuboot.verify.checks.one_file_checks import CLUSTER_CHECKS
from gpuboot.verify.findings import Finding, from_file

_AGAIN = "ask by hand, on a control plane: `kubectl get --raw {}`"


def evaluate(answers: Mapping[str, Answer] | None) -> list[Finding]:
    """The findings; none where nobody asked. + answers: by the link's name"""
    if answers is None:
        return []
    return [
        from_file(check.link, one, one.node)
        for check in CLUSTER_CHECKS
        for one in _says(check, answers.get(check.link.name, Answer(error="it was not asked")))
    ]


def _says(check: ClusterCheck, answer: Answer) -> Iterable[Says]:
    error = answer.error
    if not error:
        try:
            return list(check.evaluate(json.loads(answer.body)))
        except (ValueError, LookupError, TypeError, AttributeError) as wrong:
            start = answer.body[:60].decode(errors="replace")
            error = f"an answer of another shape ({wrong!r}): {start!r}"
    return [Says(status="unknown", detail=error, remedy=_AGAIN.format(check.path))]
