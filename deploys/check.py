"""Preflight alone: `pyinfra INVENTORY deploys/check.py -y`, or `gpuboot check INVENTORY`.

Reads all hosts, of a cluster or Docker hosts, and reports what a run would report; it changes
nothing.
"""

from pathlib import Path

from deploys.phases.preflight import preflight
from deploys.run.context import read

docker_hosts = read().docker_hosts
deploy = Path(__file__).with_name("standalone.py" if docker_hosts else "site.py")
preflight(deploy=str(deploy), docker_hosts=docker_hosts, check_only=True)
