"""Docker on hosts without Kubernetes: what it needs, its packages, and its NVIDIA runtime."""

from deploys.engine.operation import phase
from deploys.parts.containerd import operations as containerd
from deploys.parts.docker import operations as docker
from deploys.parts.files import operations as files
from deploys.parts.mig import operations as mig
from deploys.parts.packages import operations as packages
from deploys.parts.units import operations as units
from deploys.phases import base as cluster_base
from deploys.phases.repositories import add_repositories, add_repository
from deploys.phases.runtime import install_toolkit, keep_secrets
from deploys.run.context import Context, current
from gpuboot.config.compose_images import mirror_addresses
from gpuboot.docker import docker_mig as mig_layouts
from gpuboot.hosts import prerequisites, proxy, registries

_PROXY = "/etc/systemd/system/docker.service.d/gpuboot-proxy.conf"


@phase("Base")
def base() -> None:
    """Prepare a host for Docker."""
    context = current()
    cluster_base.configure_apt(context)
    packages.finished(
        name="Finish installations that were interrupted",
        manager=context.platform.package_manager,
    )
    packages.installed(
        name="Install prerequisites of Docker",
        versions=dict.fromkeys(cluster_base.package_names(context, prerequisites.DOCKER), ""),
        manager=context.platform.package_manager,
    )
    add_repositories(context)


@phase("GPU sharing")
def gpu_sharing() -> None:
    """Divide GPUs by MIG as the settings say, before anything hands them to containers."""
    context = current()
    state = context.state
    layout = mig_layouts.layout(context.node, context.settings, state.gpu_ids, state.mig_profiles)
    if layout:
        mig.partitioned(
            name="Divide GPUs by MIG",
            layout=layout,
            program=mig_layouts.program(),
            contents=mig_layouts.files(layout),
        )


@phase("Toolkit")
def toolkit() -> None:
    """Install NVIDIA's container toolkit; nothing on hosts without GPUs."""
    context = current()
    if context.node.gpus:
        install_toolkit(context)


@phase("Docker")
def engine() -> None:
    """Install Docker's engine, command line and compose plugin, at the lock's versions."""
    context = current()
    lock, mirrors = context.lock, context.settings.mirrors
    add_repository(context, "docker")
    packages.installed(
        name=f"Install Docker {lock.docker.version}",
        versions=package_versions(context),
        manager=context.platform.package_manager,
        hold=True,
    )
    if mirrors.images and mirrors.ca_bundle:
        docker.mirrors_trusted(
            name="Trust the registry mirrors' certificates",
            hosts=mirror_addresses(mirrors),
            ca_bundle=mirrors.ca_bundle,
        )
    units.running(name="Start Docker", units=["containerd.service", "docker.service"])


def package_versions(context: Context) -> dict[str, str]:
    """Docker's packages with the patterns of their versions."""
    lock = context.lock
    versions = {
        "containerd.io": lock.containerd.version,
        "docker-ce": lock.docker.version,
        "docker-ce-cli": lock.docker.version,
        "docker-compose-plugin": lock.docker.compose,
    }
    return {
        name: context.platform.version_pattern(name, version) for name, version in versions.items()
    }


@phase("Runtime")
def runtime() -> None:
    """Make Docker know the GPUs: NVIDIA's runtime is the default one of GPU hosts."""
    context = current()
    keep_secrets(context, str(registries.DOCKER), registries.docker(context.settings))
    proxied = proxy.is_set(context.settings.proxy)
    files.present(
        name="Configure dockerd's proxy",
        contents={_PROXY: proxy.UNIT} if proxied else {},
        absent=[] if proxied else [_PROXY],
    )
    docker.configured(
        name="Configure dockerd, reloading it where that is enough",
        toolkit=bool(context.node.gpus),
        proxied=proxied,
    )
    if context.node.gpus:
        containerd.cdi(name="Generate the CDI specification of the GPUs")
