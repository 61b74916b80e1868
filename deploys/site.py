"""The whole product, phase by phase. `pyinfra inventories/<site>.py deploys/site.py`

Every run brings the cluster to the state that settings and version lock describe: the first run
makes it, later runs change what differs, and an upgrade is a run with a newer lock.
"""

from deploys.context import begin
from deploys.preflight import preflight

begin()
preflight()
