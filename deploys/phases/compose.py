"""The compose project: exporters on GPU hosts; Prometheus, Alertmanager and Grafana on one."""

from pyinfra.api.exceptions import DeployError

from deploys.engine.operation import phase
from deploys.parts.compose import operations as operations
from deploys.phases import node_software as parts
from deploys.run.context import current
from gpuboot.config.problems import Problem, render
from gpuboot.config.settings import SettingsError
from gpuboot.docker.compose import project


@phase("Compose")
def compose() -> None:
    """Bring up what this host has to run.

    Raises `DeployError` for files of the operator (secrets, collectors) that cannot be read.
    """
    context = current()
    try:
        compose_project = project(
            context.node, context.nodes, context.settings, context.lock,
            nvswitches=parts.nvswitches(context) == "nvswitch",
        )  # fmt: skip
    except SettingsError as error:
        raise DeployError(str(error)) from None
    except (OSError, ValueError) as error:
        remedy = "correct the setting; nothing of the compose project was changed"
        raise DeployError(render([Problem("", str(error), remedy)])) from None
    operations.up(name="Start the compose project", project=compose_project)
