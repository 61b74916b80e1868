"""Where a host downloads from, and whether anybody answers there."""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.hosts import downloads, repositories
from gpuboot.hosts import proxy as proxies
from gpuboot.monitoring.charts.chart_repositories import repository, used

_PORTS = {"http": 80, "https": 443}


def endpoints(settings: Settings, node: Node) -> dict[str, list[str]]:
    """What a host has to reach: `host:port` -> what it gets from there.

    What comes by a proxy needs the proxy alone: the host need not even resolve the others' names.
    """
    uses: dict[str, list[str]] = {}
    for purpose, url in _downloads(settings, node):
        if proxy := proxies.used(settings.proxy, url):
            uses[_address(proxy)] = ["what comes by the HTTP proxy"]
        else:
            uses.setdefault(_address(url), []).append(purpose)
    return uses


def _downloads(settings: Settings, node: Node) -> Iterable[tuple[str, str]]:
    mirrors = settings.mirrors
    docker = node.role == "docker"
    unused = set() if node.gpus else {"cuda", "toolkit"}
    for name, url in repositories.UPSTREAM.items():
        if name not in unused and not (docker and name == "kubernetes"):
            mirror = mirrors.apt.get(name)  # type: ignore[call-overload]
            yield f"package repository {name}", mirror.url if mirror else url
    for registry in (_docker_registries if docker else _cluster_registries)(settings, node):
        mirrored = mirrors.images.get(registry) or mirrors.images.get("*")
        # Docker Hub's registry has another address than its name
        address = "registry-1.docker.io" if registry == "docker.io" else registry
        yield f"images of {registry}", mirrored or f"https://{address}"
    if node.leader:
        yield "Helm", mirrors.helm or downloads.HELM_PUBLISHER
        locked = versions.lock(settings).charts
        for name in sorted({locked[chart].repository for chart in used(settings)}):
            yield f"charts of {name}", repository(name, settings)


def _cluster_registries(settings: Settings, node: Node) -> list[str]:
    monitoring = settings.monitoring
    local_path = monitoring.storage.provisioner == "local-path"
    return _needed(
        {
            "registry.k8s.io": True,
            "ghcr.io": True,  # flannel's, and the approver of kubelets' certificates
            "quay.io": monitoring.enabled,
            "nvcr.io": settings.gpu_operator.enabled or bool(node.gpus),
            "docker.io": monitoring.enabled and (monitoring.grafana or local_path),
            "cr.fluentbit.io": settings.logs.enabled,
        }
    )


def _docker_registries(settings: Settings, node: Node) -> list[str]:
    grafana = node.monitor and settings.monitoring.grafana
    return _needed({"quay.io": True, "nvcr.io": bool(node.gpus), "docker.io": grafana})


def _needed(registries: Mapping[str, bool]) -> list[str]:
    return [registry for registry, needed in registries.items() if needed]


def _address(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or _PORTS[parts.scheme]}"


def problems(
    settings: Settings, nodes: Iterable[Node], unreachable: Mapping[str, Iterable[str]]
) -> list[Problem]:
    """A problem for each place that cannot be reached, and one for all hosts that reach none.

    + unreachable: inventory name -> the `host:port` of `endpoints` that did not answer
    """
    cut_off: list[str] = []
    hosts_of: dict[str, list[str]] = {}
    uses: dict[str, list[str]] = {}
    for node in nodes:
        needed, unanswered = endpoints(settings, node), set(unreachable.get(node.host, ()))
        if len(needed) > 1 and unanswered >= set(needed):
            cut_off.append(node.host)
            continue
        for address in sorted(unanswered):
            hosts_of.setdefault(address, []).append(node.host)
            uses.setdefault(address, needed[address])
    reported = [
        _problem(hosts, f"{address} does not answer ({', '.join(uses[address])})")
        for address, hosts in hosts_of.items()
    ]
    if cut_off:
        reported.append(_problem(cut_off, "none of the addresses to download from answers"))
    return reported


def _problem(hosts: Sequence[str], cause: str) -> Problem:
    remedy = (
        "check name resolution, routes and firewalls between the two; a site without internet "
        "names its mirror in mirrors.*, one with a proxy in proxy.*"
    )
    if len(hosts) == 1:
        return Problem(hosts[0], cause, remedy)
    return Problem("", f"from {', '.join(hosts)}: {cause}", remedy)
