"""`gpuboot init`: from hosts that answer by SSH to an inventory and its settings."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuboot.cli import runs

Hosts = Annotated[
    list[str] | None, typer.Argument(help="Each user@host:port, host, or a name of ~/.ssh/config.")
]
Name = Annotated[str, typer.Option("--name", help="Of the site: its files, and its cluster.")]
ControlPlane = Annotated[
    list[str] | None,
    typer.Option("--control-plane", help="One of the hosts; again for more; default: the first."),
]
Endpoint = Annotated[
    str, typer.Option("--endpoint", help="host:port of a load balancer before the control plane.")
]
Docker = Annotated[bool, typer.Option("--docker", help="Docker hosts instead of a cluster.")]
Monitor = Annotated[
    str, typer.Option("--monitor", help="With --docker: the host that runs Prometheus.")
]
User = Annotated[str, typer.Option("--user", help="SSH user, where a host names none.")]
Port = Annotated[int | None, runs.rare_option("--port", help="SSH port, where a host names none.")]
Key = Annotated[str, typer.Option("--key", help="Private key; default: agent and usual keys.")]
SshConfig = Annotated[str, runs.rare_option("--ssh-config", help="Instead of ~/.ssh/config.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the site's files.")]


def init(
    hosts: Hosts = None,
    name: Name = "",
    control_plane: ControlPlane = None,
    endpoint: Endpoint = "",
    docker: Docker = False,
    monitor: Monitor = "",
    user: User = "",
    port: Port = None,
    key: Key = "",
    ssh_config: SshConfig = "",
    same_sudo_password: runs.SameSudoPassword = False,
    force: Force = False,
    _all_options: runs.AllOptions = False,
) -> None:
    """Read hosts over SSH, and write their inventory and settings for you to edit.

    No host is changed. Exit code: 0 written, 1 nothing was written, 2 run in the wrong folder.
    """
    # what reads hosts takes a third of a second to be imported, which other commands need not pay
    from gpuboot.cli.init_steps import InitArguments, make_site_files

    first = [monitor] if monitor else list(control_plane or [])
    arguments = InitArguments(
        hosts=list(hosts or []), name=name, docker=docker, first=first, endpoint=endpoint,
        user=user, port=port, key=key, ssh_config=ssh_config,
        sudo_password=same_sudo_password, force=force,
    )  # fmt: skip
    make_site_files(arguments, bool(control_plane), bool(monitor))
