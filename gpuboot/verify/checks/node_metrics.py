"""The link `nodes`, as far as metrics tell: node-exporter measures every node of the cluster.

That its targets are up says nothing of nodes that it does not run on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gpuboot.verify.checks.one_file import Answer
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import Finding, FindingBuilder

_CHECK = "node-exporter measures it"
_JOB = "node-exporter"
_REMEDY = (
    "see its DaemonSet (`kubectl get daemonsets -A -l app.kubernetes.io/name="
    "prometheus-node-exporter -o wide`), its node selector and its events; run deploys/site.py, "
    "which puts back what somebody has changed"
)


def evaluate(evidence: Evidence) -> list[Finding]:
    """A finding for each node that Prometheus has no target of; [] where that is not checked."""
    expected, targets = evidence.expected_objects, evidence.metrics.targets
    nodes = _addresses((evidence.answers or {}).get("nodes"))
    if expected is None or not expected.node_exporter or targets is None or not nodes:
        return []
    measured = {urlsplit(target.url).hostname for target in targets if target.job == _JOB}
    missing = [name for name, addresses in nodes.items() if not addresses & measured]
    if not missing:
        return [FindingBuilder("nodes", _CHECK).passed(f"node-exporter measures all {len(nodes)}")]
    return [
        FindingBuilder("nodes", _CHECK, name).failed(
            "Prometheus has no target node-exporter of it: nobody measures its CPUs, memory and "
            "disks",
            _REMEDY,
        )
        for name in missing
    ]


def _addresses(answer: Answer | None) -> Mapping[str, set[str | None]]:
    """Node -> its addresses; {} without an answer, which the link itself tells."""
    try:
        items: list[Any] = json.loads(answer.body)["items"] if answer else []
        return {
            item["metadata"]["name"]: {
                entry["address"].lower()
                for entry in item["status"]["addresses"]
                if entry["type"] == "InternalIP"
            }
            for item in items
        }
    except (ValueError, LookupError, TypeError):
        return {}
