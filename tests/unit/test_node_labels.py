"""The labels that the phase Kubernetes gives nodes."""

from __future__ import annotations

import pytest

from deploys.phases.kubernetes import labels
from gpuboot.config.inventory import Node, Role

WORKER = "node-role.kubernetes.io/worker"
GPUS = "gpuboot.io/gpus"


@pytest.mark.parametrize(
    ("role", "gpus", "expected"),
    [
        ("worker", 8, {WORKER: "", GPUS: "8"}),
        ("worker", 0, {WORKER: "", GPUS: None}),
        ("control_plane", 2, {WORKER: None, GPUS: "2"}),
        ("control_plane", 0, {WORKER: None, GPUS: None}),
    ],
)
def test_labels_follow_the_inventory(
    role: Role, gpus: int, expected: dict[str, str | None]
) -> None:
    node = Node("host", "node", "192.0.2.1", role, gpus, leader=False)
    assert labels(node) == expected
