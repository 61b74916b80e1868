"""What rules and panels need beside GPU exporters and Prometheus; not every site has it."""

from __future__ import annotations

from enum import Flag, auto

from gpuboot.config.settings import Settings


class Requirement(Flag):
    """Something that series or their labels come from. Several are joined by `|`.

    A rule or panel requires what it says nothing without. What it merely reads as well, on one
    side of an `or` or after `unless`, it does not require.
    """

    NONE = 0
    KUBE_STATE_METRICS = auto()  # kube_*: nodes, pods, requests and quotas as Kubernetes has them
    KUBERNETES = auto()  # the API server, kubelets and cluster Services are scraped
    CONTROL_PLANE_TARGETS = auto()  # etcd and kube-proxy are scraped
    GPU_OPERATOR = auto()  # gpu_operator_*
    ETCD_BACKUPS = auto()  # etcd is backed up, and node-exporter reads what the program tells
    DCGM_ON_HOSTS = auto()  # timers ask a host engine, and node-exporter reads what it says
    NVSWITCH_ERRORS = (
        auto()
    )  # a timer on nodes with NVSwitches, and node-exporter reads what it says
    NODE_EXPORTER = auto()  # node_*: hosts tell their time, names and load
    # `gpuboot drift` or `outdated` run by a timer, and node-exporter reads what they say
    TIMER_METRICS = auto()
    POD_LABELS = auto()  # series of a GPU carry the namespace and pod that hold it


IN_CLUSTER = ~Requirement.NONE
ON_DOCKER_HOSTS = (
    Requirement.DCGM_ON_HOSTS
    | Requirement.NODE_EXPORTER
    | Requirement.NVSWITCH_ERRORS
    | Requirement.TIMER_METRICS
)


def available_sources(site: Requirement, settings: Settings) -> Requirement:
    """What a site offers, with these settings.

    + site: `IN_CLUSTER` or `ON_DOCKER_HOSTS`
    """
    if not settings.monitoring.control_plane_targets:
        site &= ~Requirement.CONTROL_PLANE_TARGETS
    node_exporter = settings.monitoring.values.get("nodeExporter", {}).get("enabled", True)
    if not node_exporter:
        site &= ~(Requirement.NODE_EXPORTER | Requirement.NVSWITCH_ERRORS)
    # Docker hosts' node-exporter reads files where DCGM's timers write some
    reads_files = settings.dcgm == "host" or Requirement.KUBERNETES in site
    if not (node_exporter and reads_files):
        site &= ~Requirement.TIMER_METRICS
    if not (settings.backup.enabled and node_exporter):
        site &= ~Requirement.ETCD_BACKUPS
    if not (settings.dcgm == "host" and node_exporter):
        site &= ~Requirement.DCGM_ON_HOSTS
    return site
