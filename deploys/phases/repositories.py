"""The package repositories of a host."""

from deploys.parts.packages import repository_operations as repositories
from deploys.run.context import Context
from gpuboot.hosts import proxy
from gpuboot.hosts.repositories import repository

_TITLES = {
    "cuda": "Add NVIDIA's CUDA repository",
    "docker": "Add Docker's package repository",
    "kubernetes": "Add the Kubernetes package repository",
    "toolkit": "Add NVIDIA's container toolkit repository",
}


def add_repository(context: Context, key: str) -> None:
    """Configure a repository on the current host. `key`: its name in `settings.mirrors.apt`."""
    settings, minor = context.settings, context.lock.kubernetes.minor
    source = repository(key, context.platform, context.state.arch, minor, settings)
    repositories.configured(
        name=_TITLES[key],
        repository=source,
        ca_bundle=settings.mirrors.ca_bundle,
        curl=proxy.curl(settings, source.key_url),
    )
