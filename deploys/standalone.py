"""GPU monitoring without Kubernetes: Docker hosts with GPUs, watched by one of them or another.

    pyinfra inventories/docker.py deploys/standalone.py

The same drivers, exporter, rules, routes and dashboards as in a cluster, by compose projects.
"""

from pyinfra.context import state

from deploys.phases.compose import compose
from deploys.phases.dcgm import dcgm, dcgm_upgrade
from deploys.phases.docker import base, engine, gpu_sharing, runtime, toolkit
from deploys.phases.drivers import drivers
from deploys.phases.preflight import preflight
from deploys.run.context import begin
from deploys.run.report import watch
from deploys.verify import verify

watch(state, begin()[0])

preflight(deploy=__file__, docker_hosts=True)
base()
drivers()
gpu_sharing()
dcgm()
toolkit()
engine()
runtime()
compose()
dcgm_upgrade()
verify()
