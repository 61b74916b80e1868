"""The layers of a host alone, as deploys/site.py makes them: all that is there before kubeadm runs.

pyinfra bench/inventory.py bench/host_layers.py
"""

from pyinfra.api.deploy import deploy
from pyinfra.context import state

from deploys.phases.base import base
from deploys.phases.drivers import drivers
from deploys.phases.kubernetes import packages_and_config
from deploys.phases.preflight import preflight
from deploys.phases.runtime import runtime
from deploys.run.context import begin, current
from deploys.run.report import watch
from gpuboot.kubernetes.kubeadm import configuration


@deploy("Kubernetes")
def kubernetes() -> None:
    """Kubernetes' packages, and kubeadm's configuration; no cluster is made."""
    context = current()
    packages_and_config(context, configuration(context.settings, context.lock, context.nodes))


watch(state, begin()[0])

preflight()
base()
drivers()
runtime()
kubernetes()
