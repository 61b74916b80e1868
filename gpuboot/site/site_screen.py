"""What a person sees of a site that was just written down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuboot.config.problems import Problem
from gpuboot.plan.terminal_tables import table_lines
from gpuboot.site.draft import Site
from gpuboot.site.site_files import deploy_of

_GROUPS = {
    "control_plane": "control plane",
    "workers": "workers",
    "gpu_hosts": "GPU hosts",
    "monitor": "monitor",
}


def lines(site: Site, problems: Sequence[Problem], files: Sequence[Path]) -> Iterator[str]:
    """The last screen of `gpuboot init`.

    + problems: what a run would refuse already now
    + files: the inventory, and its group_data
    """
    hosts = [(host.name, host.address or "none", host.models, host.system) for host in site.hosts]
    yield from table_lines([("host", "address", "GPUs", "system"), *hosts])
    yield ""
    inventory, group_data = map(str, files)
    width = max(len(inventory), len(group_data))
    gpus = sum(host.gpus for host in site.hosts)
    groups = "; ".join(
        f"{_GROUPS[group]}: {', '.join(host.name for host in hosts) or 'none'}"
        for group, hosts in site.groups.items()
    )
    yield f"written: {inventory:{width}}  {groups}; {gpus} GPUs"
    yield f"         {group_data:{width}}  how to log in, and settings"
    yield from _notes(site)
    if problems:
        noun = "problem" if len(problems) == 1 else "problems"
        yield f"{len(problems)} {noun} to solve before the first run"
        yield from map(str, sorted(set(problems)))
    password = " --same-sudo-password" if site.choices.sudo_password else ""
    yield f"next:    gpuboot check {inventory}{password}"
    yield f"         pyinfra {inventory} {deploy_of(site.choices.docker)} --dry{password}"


def _notes(site: Site) -> Iterator[str]:
    for host in site.hosts:
        if host.more_addresses:
            yield (
                f"{host.name} has several addresses: {host.address} is written; if the other "
                f"hosts reach it by {' or '.join(host.more_addresses)}, correct its address"
            )
    if not any(host.gpus for host in site.hosts):
        yield "no host has an NVIDIA GPU on its PCI bus (lspci -d 10de:): nothing to be proven"
