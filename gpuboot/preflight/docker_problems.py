"""Preflight of Docker hosts: what keeps Docker, the exporters or the monitoring from running."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts import platforms
from gpuboot.monitoring.alerting.secrets import kubernetes_secret_problems, receiver_secrets
from gpuboot.preflight import network_problems
from gpuboot.preflight import ports as network_ports
from gpuboot.preflight.preflight_checks import MACHINE, Check, Finding, Subject, replaced

# our own processes, which hold ports on a later run; the kernel cuts names to 15 characters
_GPUBOOT_CONTAINERS = ("dcgm-exporter", "node_exporter", "prometheus", "alertmanager", "grafana")


def checks(settings: Settings) -> tuple[Check, ...]:
    """What is checked of every Docker host, with these settings."""
    return (
        *MACHINE,
        _kernel,
        _runtimes,
        _cluster,
        lambda subject: network_problems.address(subject.node, subject.state),
        _ports,
        # settings are the same for all hosts: reported once
        lambda subject: unsupported_settings(settings) if subject.node.monitor else iter(()),
    )


def _kernel(subject: Subject) -> Iterator[Finding]:
    if "overlay" not in subject.state.kernel_features:
        yield (
            f"its kernel {subject.state.kernel} lacks overlay",
            "install the distribution's full kernel (linux-modules-extra on cloud images)",
        )


def _runtimes(subject: Subject) -> Iterator[Finding]:
    if platform := platforms.find(subject.state):
        names = platform.distribution_docker
        yield from replaced(subject.state, platform, names, "Docker's own packages replace")


def _cluster(subject: Subject) -> Iterator[Finding]:
    if subject.state.kubeconfigs or subject.state.is_active("kubelet"):
        yield (
            "it is a node of a Kubernetes cluster",
            "use deploys/site.py for it, which monitors GPUs in the cluster",
        )


def ports(node: Node, settings: Settings) -> dict[int, str]:
    """TCP ports that our containers listen on at a host, and what for."""
    standalone = settings.standalone
    uses = {standalone.ports["node_exporter"]: "node-exporter"}
    if node.gpus:
        uses[standalone.ports["exporter"]] = "dcgm-exporter"
    if node.monitor:
        uses |= {
            standalone.ports["prometheus"]: "Prometheus",
            standalone.ports["alertmanager"]: "Alertmanager",
        }
        if settings.monitoring.grafana:
            uses[standalone.ports["grafana"]] = "Grafana"
    return uses


def _ports(subject: Subject) -> Iterator[Finding]:
    docker = subject.state.is_active("docker")
    for port, use in sorted(ports(subject.node, subject.settings).items()):
        owner = subject.state.ports.get(port)
        # without ss the owner of a port is not known; ours are containers
        may_be_own = docker and not subject.state.remains.port_units.get(str(port), "").endswith(
            ".service"
        )
        if owner is None or (
            may_be_own and (owner == "?" or owner.startswith(_GPUBOOT_CONTAINERS))
        ):
            continue
        yield (
            f"TCP port {port} is in use by {network_ports.holder(subject.state, port)}; {use} "
            "needs it",
            f"{network_ports.freed(subject.state, port)}; or set another port in "
            "settings.standalone",
        )


def unsupported_settings(settings: Settings) -> Iterator[Finding]:
    """Settings that mean something in a cluster only, and mirrors that Docker cannot use."""
    for problem in kubernetes_secret_problems(receiver_secrets(settings.alertmanager)):
        yield problem.cause, problem.remedy
    if settings.cluster.virtual_ip:
        yield "cluster.virtual_ip is set, and Docker hosts have no API server", "leave it out"
    if settings.monitoring.remote_write:
        yield (
            "monitoring.remote_write is set, which deploys/standalone.py does not do",
            "leave it out, or write it into a file of your own that scrapes this Prometheus",
        )
    for registry, url in settings.mirrors.images.items():
        parts = urlsplit(url)
        if parts.scheme != "https" or not f"{parts.path}/".startswith("/v2/"):
            yield (
                f"mirrors.images[{registry!r}] is none that Docker can pull from",
                "name an https address whose path begins with /v2, e.g. "
                f"https://mirror.example.com/v2/{registry.replace('*', 'proxy')}",
            )
    node = Node("", "", "", "docker", 1, leader=False, monitor=True)
    if len(ports(node, settings)) < 4 + settings.monitoring.grafana:
        yield "two of settings.standalone's ports are the same", "give each a port of its own"
