"""The whole product, phase by phase. `pyinfra inventories/<site>.py deploys/site.py`

Every run brings the cluster to the state that settings and version lock describe: the first run
makes it, later runs change what differs, and an upgrade is a run with a newer lock.
"""

from pyinfra.context import state

from deploys.base import base
from deploys.context import begin
from deploys.dcgm_exporter import dcgm_exporter
from deploys.drivers import drivers
from deploys.gpu_operator import gpu_operator
from deploys.helm import helm
from deploys.kubernetes import kubernetes
from deploys.monitoring import monitoring
from deploys.preflight import preflight
from deploys.run_report import watch
from deploys.runtime import runtime
from deploys.storage import storage
from deploys.verify import verify

watch(state, begin()[0])

preflight()
base()
drivers()
runtime()
kubernetes()
helm()
storage()
monitoring()
gpu_operator()
dcgm_exporter()
verify()
