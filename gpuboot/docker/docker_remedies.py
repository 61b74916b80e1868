"""What a person can do about findings on Docker hosts."""

from gpuboot.docker import docker_mig
from gpuboot.verify.checks.remedies import Remedies

DEPLOY = "deploys/standalone.py"
_EXPORTER = (
    "on the host: `docker compose -p gpuboot ps` and `docker compose -p gpuboot logs "
    "dcgm-exporter`; from the monitoring host its port must be reachable (firewalls)"
)
_TARGETS = (
    "see Prometheus, Status > Targets; its targets are files below prometheus/targets in the "
    "project's folder on the monitoring host"
)


def _logs(service: str) -> str:
    return f"`docker compose -p gpuboot logs {service}` on the monitoring host"


DOCKER_HOSTS = Remedies(
    deploy=DEPLOY,
    drain="stop the host's containers that use GPUs",
    gpu_clients="the container dcgm-exporter, nvidia-persistenced",
    exporter_down=_EXPORTER,
    exporter_twice=_EXPORTER,
    exporter_restart="restart the exporter (`docker compose -p gpuboot restart dcgm-exporter` on "
    "the host)",
    target_missing=_TARGETS,
    target_twice="keep one target for each host: hosts of the inventory need no entry in "
    "standalone.targets nor a target file of your own",
    target_stale=_TARGETS,
    series_missing=_TARGETS,
    series_node=_TARGETS,
    target_down="see the container behind it (`docker compose -p gpuboot ps`), and that the "
    "monitoring host reaches its port",
    rules_missing=_logs("prometheus"),
    rule_broken=_logs("prometheus"),
    prometheus=_logs("prometheus"),
    alertmanager=_logs("alertmanager"),
    grafana=_logs("grafana"),
    dashboards_missing=_logs("grafana"),
    mig_layout=f"run {DEPLOY}, which makes the layout; `journalctl -u {docker_mig.UNIT}` there "
    "tells why it was not made again at boot",
)
