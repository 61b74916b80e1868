"""The layers of the hosts alone: everything of deploys/site.py that comes before kubeadm runs.

    pyinfra inventories/<site>.py deploys/host_layers.py

For machines that are made ready before their cluster, or images of them; and for measurements.
"""

from pyinfra.context import state

from deploys.engine.operation import phase
from deploys.phases.base import base
from deploys.phases.dcgm import dcgm
from deploys.phases.drivers import drivers
from deploys.phases.kubernetes import packages_and_config
from deploys.phases.node_upgrades import node_upgrades
from deploys.phases.packages import packages
from deploys.phases.preflight import preflight
from deploys.phases.runtime import runtime
from deploys.run.context import begin, current
from deploys.run.report import watch
from gpuboot.cluster.kubeadm import configuration


@phase("Kubernetes")
def kubernetes() -> None:
    """Install Kubernetes' packages, write kubeadm's configuration, and make no cluster."""
    context = current()
    packages_and_config(context, configuration(context.settings, context.lock, context.nodes))


watch(state, begin()[0])

preflight(deploy=__file__)
base()
packages()
node_upgrades(kubelets=False)
drivers()
dcgm()
runtime()
kubernetes()
