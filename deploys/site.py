"""The whole product, phase by phase. `pyinfra inventories/<site>.py deploys/site.py`

Every run brings the cluster to the state that settings and version lock describe: the first run
makes it, later runs change what differs, and an upgrade is a run with a newer lock. Monitoring that
is switched off leaves its volumes, unless `--data gpuboot_delete_volumes=monitoring` gives them up.
"""

from pyinfra.context import state

from deploys.phases.base import base
from deploys.phases.control_plane_upgrade import control_plane_upgrade
from deploys.phases.dcgm import dcgm, dcgm_upgrade
from deploys.phases.dcgm_exporter import dcgm_exporter
from deploys.phases.drivers import drivers
from deploys.phases.gate import gate
from deploys.phases.gpu_operator import gpu_operator, gpu_sharing
from deploys.phases.helm import helm
from deploys.phases.kubernetes import kubernetes
from deploys.phases.logs import logs
from deploys.phases.metrics import metrics
from deploys.phases.monitoring import custom_resources, monitoring
from deploys.phases.node_upgrades import node_upgrades
from deploys.phases.packages import packages
from deploys.phases.preflight import preflight
from deploys.phases.rollout import rollout
from deploys.phases.runtime import runtime
from deploys.phases.storage import storage
from deploys.phases.switched_off import switched_off
from deploys.phases.teams import teams
from deploys.run.context import begin
from deploys.run.report import watch
from deploys.verify import verify

watch(state, begin()[0])

preflight(deploy=__file__)
base()
packages()
control_plane_upgrade()
node_upgrades()
drivers()
dcgm()
runtime()
kubernetes()
gate()
helm()
switched_off()
custom_resources()
gpu_operator()
gpu_sharing()
dcgm_exporter()
metrics()
storage()
monitoring()
logs()
teams()
rollout()
dcgm_upgrade()
verify()
