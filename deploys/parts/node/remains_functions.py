"""What others left of an etcd, a cluster or a pod network: functions for other facts' scripts."""

from __future__ import annotations

from importlib import resources

FUNCTIONS = resources.files("deploys.parts.node").joinpath("remains.sh").read_text()
