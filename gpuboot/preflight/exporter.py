"""Preflight of the exporter's choice of GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Exporter


def devices(node: Node, exporter: Exporter) -> Iterator[tuple[str, str]]:
    """`exporter.devices` names GPUs that the node has.

    An exporter that cannot find one ends: `verifyDevicePresence` in dcgm-exporter's
    internal/pkg/deviceinfo/device_info.go.
    """
    kind, _, ranges = (exporter.devices or "").partition(":")
    if kind != "g" or not ranges or not node.gpus:
        return
    highest = max(int(number) for item in ranges.split(",") for number in item.split("-"))
    if highest >= node.gpus:
        yield (
            f"exporter.devices {exporter.devices} names GPU {highest}, the node's last one is "
            f"{node.gpus - 1}: the exporter would end",
            "name GPUs that every GPU node has, or leave exporter.devices out for all of them",
        )
