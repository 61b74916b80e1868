"""Preflight alone: `pyinfra INVENTORY deploys/check.py -y`, or `gpuboot check INVENTORY`.

Reads all hosts, of a cluster or Docker hosts, and reports what a run would report; it changes
nothing.
"""

from __future__ import annotations

from deploys.phases.preflight import preflight
from deploys.run.context import read

preflight(docker_hosts=read().docker_hosts)
