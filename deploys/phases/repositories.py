"""The package repositories of a host."""

from collections.abc import Sequence

from deploys.parts.packages import repository_operations as repositories
from deploys.phases import node_software as parts
from deploys.run.context import Context
from gpuboot.hosts import proxy
from gpuboot.hosts.repositories import repository

# inventory name and repository -> title of the first operation that adds it in this run
_owners: dict[tuple[str, str], str] = {}


def add_repositories(context: Context) -> None:
    """Configure all repositories that phases of the current host install from, at once."""
    keys = ["docker"]
    if context.node.role != "docker":
        keys.append("kubernetes")
    if context.node.gpus:
        keys.append("toolkit")
        if parts.driver_version(context) or context.settings.dcgm == "host":
            keys.append("cuda")
    _configure(context, keys, "Add package repositories")


def add_repository(context: Context, key: str) -> None:
    """Configure a repository on the current host, unless an earlier phase of the run does.

    + key: its name in `settings.mirrors.apt`
    """
    _configure(context, [key], f"Add the package repository {key}")


def _configure(context: Context, keys: Sequence[str], title: str) -> None:
    # a phase is called more than once in a run: the owner stays
    own_keys = [key for key in keys if _owners.setdefault((context.node.host, key), title) == title]
    if not own_keys:
        return
    settings, minor = context.settings, context.lock.kubernetes.minor
    sources = [
        repository(key, context.platform, context.state.arch, minor, settings) for key in own_keys
    ]
    downloads = {item.name: proxy.curl(settings, item.key_url) for item in sources}
    repositories.configured(
        name=title,
        repositories=sources,
        ca_bundle=settings.mirrors.ca_bundle,
        curl={name: text for name, text in downloads.items() if text},
    )
