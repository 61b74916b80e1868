"""What hosts install: packages and images, from settings and version lock alone.

No host is asked: who fills a mirror reaches the internet, and usually no host. So what depends on
a host's hardware is there for each kind of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuboot.cluster import backup_copy, flannel, kubeadm, local_path, metrics_server
from gpuboot.config.compose_images import REPOSITORIES
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts import dcgm_engine, driver_packages, fabric, platforms, prerequisites
from gpuboot.hosts.driver_packages import Flavour
from gpuboot.hosts.platforms import Platform

# the distribution's metapackages with the headers of each new kernel
_HEADERS = {"debian": ("linux-headers-{}",), "ubuntu": ("linux-headers-generic",)}


@dataclass(frozen=True)
class PackageRequest:
    """A package that hosts install.

    + pattern: of its version, e.g. `1.36.6-*`; "" for any
    + optional: some hosts need it, and not every repository has it
    """

    name: str
    pattern: str = ""
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.name}={self.pattern}" if self.pattern else self.name


@dataclass(frozen=True)
class Site:
    """What is to be installed. + nodes: of the inventory; all of them Docker hosts, or none"""

    settings: Settings
    lock: Lock
    nodes: tuple[Node, ...]

    @property
    def docker(self) -> bool:
        return any(node.role == "docker" for node in self.nodes)

    @property
    def gpus(self) -> bool:
        """Whether any host has GPUs."""
        return any(node.gpus for node in self.nodes)


def platform(name: str) -> Platform:
    """A platform by its name in `mirror.platforms`: `debian12`. Raises KeyError."""
    return {f"{candidate.id}{candidate.version}": candidate for candidate in platforms.PLATFORMS}[
        name
    ]


def machine(architecture: str) -> str:
    """The kernel's name of an architecture of Debian: x86_64 for amd64. Raises KeyError."""
    return {debian: name for name, (debian, _) in platforms.ARCHITECTURES.items()}[architecture]


def repositories(site: Site) -> list[str]:
    """The publishers' apt repositories that hosts install from."""
    cluster = [] if site.docker else ["kubernetes"]
    return ["docker", *cluster, *(["cuda", "toolkit"] if site.gpus else [])]


def packages(site: Site, platform: Platform, architecture: str) -> list[PackageRequest]:
    """What hosts of a platform install by name."""
    lock, settings = site.lock, site.settings
    first = prerequisites.DOCKER if site.docker else prerequisites.KUBERNETES
    requests = [
        PackageRequest(name) for name in (*first, prerequisites.TIME, *settings.mirror.packages)
    ]
    pattern = platform.version_pattern
    requests.append(
        PackageRequest("containerd.io", pattern("containerd.io", lock.containerd.version))
    )
    if site.docker:
        versions = {
            "docker-ce": lock.docker.version,
            "docker-ce-cli": lock.docker.version,
            "docker-compose-plugin": lock.docker.compose,
        }
        requests += [
            PackageRequest(name, pattern(name, version)) for name, version in versions.items()
        ]
    else:
        requests += [
            PackageRequest(name, version) for name, version in kubeadm.packages(lock).items()
        ]
        requests += [PackageRequest(name) for name in _of_cluster(site)]
    if site.gpus:
        requests += _of_gpus(site, platform, architecture)
    return requests


def _of_cluster(site: Site) -> Iterator[str]:
    cluster, controls = site.settings.cluster, [
        node for node in site.nodes if node.role == "control_plane"
    ]  # fmt: skip
    if cluster.virtual_ip:
        yield "keepalived"
    elif len(controls) > 1 and not cluster.endpoint:
        yield "haproxy"
    yield from backup_copy.packages(site.settings.backup)


def _of_gpus(site: Site, platform: Platform, architecture: str) -> Iterator[PackageRequest]:
    lock, settings = site.lock, site.settings
    for name in prerequisites.TOOLKIT:
        yield PackageRequest(name, lock.toolkit.version)
    if settings.driver.enabled:
        yield from _driver(site, platform)
        for name in _HEADERS[platform.id]:
            yield PackageRequest(name.format(architecture), optional=True)
    if settings.dcgm == "host":
        version = lock.driver.version
        for name, pattern in dcgm_engine.packages(platform, lock.dcgm.version, version).items():
            yield PackageRequest(name, pattern)
        yield PackageRequest("jq")


def _driver(site: Site, platform: Platform) -> Iterator[PackageRequest]:
    settings, version = site.settings.driver, site.lock.driver.version
    flavours: Sequence[Flavour] = ("open", "proprietary")
    if settings.modules != "auto":
        flavours = (settings.modules,)
    yield PackageRequest(driver_packages.pinning_package(version))
    for flavour in flavours:
        for name in driver_packages.driver_packages(platform, version, flavour, False):
            yield PackageRequest(
                name, f"{version}-*", optional=len(flavours) > 1 and flavour != "open"
            )
    yield PackageRequest("nvidia-persistenced")
    if settings.secure_boot == "mok":
        yield PackageRequest("mokutil")
    if settings.fabric_manager != "never":
        manager = driver_packages.driver_packages(platform, version, "open", True)[-1]
        yield PackageRequest(manager, f"{version}-*", optional=settings.fabric_manager == "auto")
        yield from (PackageRequest(name, optional=True) for name in fabric.packages("nvlink5"))


def pins(site: Site, requests: Sequence[PackageRequest]) -> dict[str, str]:
    """Package -> pattern of the version that is preferred to newer ones.

    The last does what NVIDIA's pinning package does on a host: all of a driver is of one version.
    apt takes a version for patterns of names, but not for `*`.
    """
    versions = {request.name: request.pattern for request in requests if request.pattern}
    return {**versions, "?*": f"{site.lock.driver.version}-*"}


def images(site: Site) -> list[str]:
    """Images that are known without kubeadm and charts, by reference."""
    settings, lock = site.settings, site.lock
    references = [*settings.mirror.images]
    if site.docker:
        unused = set() if settings.monitoring.grafana else {"grafana"}
        used_repositories = {
            key: repository for key, repository in REPOSITORIES.items() if key not in unused
        }
        references += [
            f"{name}:{getattr(lock.images, key)}" for key, name in used_repositories.items()
        ]
    else:
        references += [f"registry.k8s.io/pause:{lock.kubernetes.pause}", *flannel.images(lock)]
        if settings.cluster.metrics_server:
            references += metrics_server.images(lock)
        if settings.monitoring.enabled and settings.monitoring.storage.provisioner == "local-path":
            references += local_path.images(lock)
    if site.gpus:
        references += _of_verification(site)
    return list(dict.fromkeys(references))


def _of_verification(site: Site) -> Iterator[str]:
    verify = site.settings.verify
    if verify.enabled:
        yield verify.image
    if verify.level == "deep":
        deep = verify.deep
        test_images = (
            deep.dcgm_image,
            deep.nvbandwidth_image,
            deep.nccl_image,
            deep.internode.image,
        )
        yield from (image for image in test_images if image)
