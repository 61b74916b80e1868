"""DCGM's host engine on GPU nodes, where a site wants it beside the exporter.

Both phases do the same but for upgrades: an exporter may be newer than the engine that it reads,
and never older. So an engine comes before the exporters, and is upgraded after them.
"""

from deploys.engine.operation import phase
from deploys.parts.dcgm import operations as operations
from deploys.parts.packages import operations as packages
from deploys.parts.rollout import operations as rollout
from deploys.phases import dcgm_exporter, gpu_operator
from deploys.phases import node_software as parts
from deploys.phases.repositories import add_repository
from deploys.run.context import Context, current
from gpuboot.cluster.backup import METRICS_FOLDER
from gpuboot.hosts import dcgm_engine as engines

READERS = {"jq": ""}
_NOTICED_S = 5  # beyond its interval, until an exporter has read again


@phase("DCGM")
def dcgm() -> None:
    """Install and start the host engine; take one away that the settings do not want any more."""
    context = current()
    if not context.node.gpus:
        return
    if context.settings.dcgm == "host":
        if not parts.driver_version(context):
            add_repository(context, "cuda")
        _engine(context, "Run DCGM's host engine", upgrade=False)
        packages.installed(
            name="Install what reads DCGM's answers",
            versions=READERS,
            manager=context.platform.package_manager,
        )
        operations.checked(
            name="Ask DCGM for the health of GPUs every five minutes, and diagnose them every day",
            program=engines.program(),
            contents=engines.check_files(context.node.name, METRICS_FOLDER),
        )
    else:
        operations.removed(
            name="Stop DCGM's host engine, which the exporter does not read",
            metrics=METRICS_FOLDER,
        )


@phase("DCGM upgrade")
def dcgm_upgrade() -> None:
    """Upgrade host engines, now that no exporter is older; then wait for the exporters."""
    context = current()
    if context.settings.dcgm != "host":
        return
    if context.node.gpus:
        _engine(context, "Upgrade DCGM's host engine", upgrade=True)
    if context.node.leader and context.node.role != "docker":
        rollout.complete(
            name="Wait for the exporters that read an upgraded engine",
            parts=[*gpu_operator.rollout_parts(context), *dcgm_exporter.rollout_parts(context)],
        )


def _engine(context: Context, title: str, upgrade: bool) -> None:
    settings, version = context.settings, context.lock.dcgm.version
    driver = engines.driver(context.state, settings, context.lock)
    operations.engine(
        name=f"{title} {version}",
        versions=engines.packages(context.platform, version, driver),
        manager=context.platform.package_manager,
        contents=engines.files(),
        version=version,
        upgrade=upgrade,
        settle_s=settings.exporter.interval_ms // 1000 + _NOTICED_S if upgrade else 0,
    )
