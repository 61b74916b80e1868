"""The inventory and group_data of a site as text: Python that a person goes on editing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from gpuboot.config.ssh_targets import Target
from gpuboot.site.draft import Site, SiteHost, inventory_names

_WIDTH = 100
Data = dict[str, str | int | bool]

_INVENTORY = '''\
"""The site {name}, first written by `gpuboot init` from what its hosts said; edit it as you like.

    gpuboot check inventories/{name}.py{pad}    # every problem of its hosts
    pyinfra inventories/{name}.py {deploy} --dry    # the plan; changes nothing
    pyinfra inventories/{name}.py {deploy}

How to log in and the settings stand in group_data/{name}.py; {page}
"""
'''
_PAGES = {
    False: "all settings are in docs/settings.md.",
    True: "docs/standalone.md says which there are.",
}
_CONTROL_PLANE = """\
# The control plane: one node, or an odd number of them.
# `address` is the node's IP address in the cluster."""
_WORKERS = """\
# Every other node. `gpus` is a promise: a node that shows fewer fails before anything is changed,
# and the verification proves exactly this number, GPU by GPU. Nodes without GPUs have none."""
_GPU_HOSTS = """\
# Every host with GPUs. `gpus` is a promise: a host that shows fewer fails before anything is
# changed. `address` is where the monitoring host reaches it."""
_MONITOR = """\
# The one host that runs Prometheus, Alertmanager and Grafana; it may be one of the above."""
_GROUPS = {
    "control_plane": _CONTROL_PLANE,
    "workers": _WORKERS,
    "gpu_hosts": _GPU_HOSTS,
    "monitor": _MONITOR,
}


def deploy_of(docker: bool) -> str:
    """The deploy that such a site is run with."""
    return "deploys/standalone.py" if docker else "deploys/site.py"


def inventory_text(site: Site) -> str:
    """The content of inventories/NAME.py."""
    deploy, name = deploy_of(site.choices.docker), site.choices.name
    page = _PAGES[site.choices.docker]
    pad = " " * (len(deploy) + 1)
    head = _INVENTORY.format(name=name, deploy=deploy, page=page, pad=pad)
    parts = [head.rstrip("\n")]
    shared, written_hosts = _shared(site.hosts), set[str]()
    for group, hosts in site.groups.items():
        parts += ["", _GROUPS[group], *_group(group, hosts, shared, written_hosts)]
    return "\n".join(parts) + "\n"


def _group(
    group: str, hosts: Sequence[SiteHost], shared: Data, written_hosts: set[str]
) -> Iterator[str]:
    """The lines of one group. + written_hosts: hosts whose data stands in a group above"""
    if not hosts:
        yield f"{group} = []"
        return
    yield f"{group} = ["
    for host in hosts:
        if host.name in written_hosts:
            yield f"    {_string(host.name)},"
            continue
        written_hosts.add(host.name)
        yield from _comments(host)
        yield f"    {literal((host.name, _data(host, shared)), 4)},"
    yield "]"


def _comments(host: SiteHost) -> Iterator[str]:
    yield _comment(f"{host.models}; {host.system}")
    if host.more_addresses:
        yield _comment(f"its other addresses: {', '.join(host.more_addresses)}")


def _comment(text: str) -> str:
    """A text as a comment of one line: what a host says of itself may hold anything."""
    return f"    # {_printable(text)}"[:_WIDTH].rstrip()


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _data(host: SiteHost, shared: Data) -> Data:
    data: Data = {"node_name": host.node_name}
    if host.address:
        data["address"] = host.address
    if host.gpus:
        data["gpus"] = host.gpus
    login = _login(host.target, host.name)
    if host.root_login:
        login["_sudo"] = False
    return data | {key: value for key, value in login.items() if shared.get(key) != value}


def _login(target: Target, name: str) -> Data:
    """How to log in to a host, as its data has it."""
    data: Data = {}
    if target.is_ssh and target.host != name:
        data["ssh_hostname"] = target.host
    if target.user:
        data["ssh_user"] = target.user
    if target.port is not None:
        data["ssh_port"] = target.port
    return data


def _shared(hosts: Sequence[SiteHost]) -> Data:
    """Data that all hosts have in common, which group_data holds once."""
    logins = [_login(host.target, host.name) for host in hosts]
    shared = {
        key: value
        for key, value in logins[0].items()
        if key != "ssh_hostname" and all(login.get(key) == value for login in logins)
    }
    if all(host.root_login for host in hosts):
        shared["_sudo"] = False
    return shared


def settings_of(site: Site) -> dict[str, Any]:
    """The settings of the site: what differs from the defaults."""
    cluster = {"name": site.choices.name}
    if site.choices.endpoint:
        cluster["endpoint"] = site.choices.endpoint
    return {"cluster": cluster}


def group_data_text(site: Site) -> str:
    """The content of group_data/NAME.py."""
    name = site.choices.name
    title = f"Settings of the site {name}: how to log in, and what differs from the defaults."
    selected_settings = settings_of(site).items()
    lines = [f'"""{title}"""', "", *_login_lines(site), "gpuboot = {"]
    lines += [f"    {_string(key)}: {literal(value, 4)}," for key, value in selected_settings]
    return "\n".join([*lines, "}"]) + "\n"


def _login_lines(site: Site) -> Iterator[str]:
    shared = _shared(site.hosts)
    sudo = "with its password" if site.choices.sudo_password else "without a password"
    notes = {
        "ssh_user": "" if "_sudo" in shared else f"  # a user that may sudo {sudo}",
        "_sudo": "  # root needs no sudo",
    }
    shared |= {"ssh_key": site.choices.ssh_key} if site.choices.ssh_key else {}
    shared |= {"ssh_config_file": site.choices.ssh_config} if site.choices.ssh_config else {}
    for key in sorted(shared, key=lambda key: key.startswith("_")):
        yield f"{key} = {literal(shared[key], 0)}{notes.get(key, '')}"
    if any(host.target.is_ssh for host in site.hosts):
        reason = "host keys come from your known_hosts, not from the wire"
        yield f'ssh_strict_host_key_checking = "yes"  # {reason}'
        yield ""
    elif shared:
        yield ""


def reading_inventory(targets: Sequence[Target], ssh_key: str, ssh_config: str) -> str:
    """An inventory just to read hosts with: nobody knows yet what they will be."""
    hosts = []
    for name, target in inventory_names(targets).items():
        # a host that does not answer is told of soon, not after five more tries
        data: dict[str, Any] = {**_login(target, name), "ssh_connect_retries": 1}
        data |= {"ssh_key": ssh_key} if ssh_key else {}
        data |= {"ssh_config_file": ssh_config} if ssh_config else {}
        hosts.append((name, data))
    return f"hosts = {hosts!r}\n"


def _string(text: str) -> str:
    return json.dumps(_printable(text), ensure_ascii=False)


def literal(value: Any, indent: int) -> str:
    """A value as ruff formats it: on one line if it fits behind `indent` columns, else split."""
    line = _one_line(value)
    # with the comma that follows it
    if not isinstance(value, (tuple, dict)) or indent + len(line) + 1 <= _WIDTH:
        return line
    pad = " " * (indent + 4)
    if isinstance(value, tuple):
        inner = [literal(item, indent + 4) for item in value]
        opening, closing = "()"
    else:
        inner = [f"{_string(key)}: {literal(item, indent + 4)}" for key, item in value.items()]
        opening, closing = "{}"
    return "\n".join([opening, *(f"{pad}{item}," for item in inner), " " * indent + closing])


def _one_line(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{_string(key)}: {_one_line(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_one_line, value)) + ")"
    return _string(value) if isinstance(value, str) else repr(value)
