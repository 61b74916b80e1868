"""Preflight of what a node's next boot would undo, where only the site can change that."""

from collections.abc import Iterable, Iterator, Mapping

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts import boot_overrides, sysctls
from gpuboot.hosts.node_state import NodeState

_RESOLVED = "/run/systemd/resolve/resolv.conf"  # kubeadm names it where systemd-resolved runs
# written by systemd-resolved, NetworkManager and resolvconf for dnsmasq: the servers behind them
_BEHIND = (_RESOLVED, "/run/NetworkManager/no-stub-resolv.conf", "/run/dnsmasq/resolv.conf")
_LOOPBACK = ("127.", "::1")


def problems(state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """Cause and remedy of what a run cannot make hold by itself."""
    if state.boot.hosts_readonly:
        yield (
            "/etc/hosts cannot be written, not even by root: its nodes' names have no place",
            "take the attribute away (lsattr /etc/hosts; chattr -i /etc/hosts), or mount its file "
            "system writable",
        )
    # of a member plan and drift name it (`gpuboot.hosts.boot_overrides`), and a run goes on
    is_member = "/etc/kubernetes/kubelet.conf" in state.kubeconfigs
    for key, line in () if is_member else sysctls.overriding(state.boot.sysctls):
        yield (
            f"{line.place} sets `{line.text}` at each boot, after gpuboot's {sysctls.FILE}; "
            f"Kubernetes needs {key} = {sysctls.EXPECTED[key]}",
            f"change that line to `{key} = {sysctls.EXPECTED[key]}`, or take it out",
        )
    if settings.cluster.fail_swap_on:
        for line in state.boot.swap:
            yield (
                f"{line.place} turns swap on at each boot (`{line.text}`), and the kubelet then "
                "does not start",
                "take that line out, or set cluster.fail_swap_on = False",
            )
    yield from _resolver(state, settings)


def _resolver(state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """Name servers that pods would get: on the node itself, they are not the pods' own."""
    resolvers = state.boot.resolvers
    choice = _choice(resolvers)
    configured = settings.cluster.kubelet.get("resolvConf")
    if configured in _BEHIND and configured not in resolvers and resolvers:
        yield (
            f"cluster.kubelet.resolvConf names {configured}, which is not there: no pod could "
            "start",
            "name a file that every node has: " + (choice or "one that you write there"),
        )
        return
    joined = "/etc/kubernetes/kubelet.conf" in state.kubeconfigs
    missing = state.boot.resolver_missing
    if joined and missing and configured in (None, missing):
        yield (
            f"the kubelet takes name servers from {missing} (resolvConf in "
            "/var/lib/kubelet/config.yaml), which is not there: no new pod starts",
            (
                "start what writes it (`systemctl enable --now systemd-resolved`), or "
                if missing == _RESOLVED
                else ""
            )
            + f'set cluster.kubelet = {{"resolvConf": "{choice or "FILE"}"}}, a file '
            "that every node has",
        )
    file = configured or (
        _RESOLVED if "systemd-resolved" in state.boot.units else "/etc/resolv.conf"
    )
    local_servers = [server for server in resolvers.get(file, ()) if server.startswith(_LOOPBACK)]
    if not local_servers or joined:
        return  # what a living cluster's CoreDNS does of it, diagnose sees
    name = choice or "/etc/kubernetes/resolv.conf"
    write = "" if choice else f"write `nameserver ADDRESS` lines to {name} on each node, "
    yield (
        f"{file} names {local_servers[0]}, a name server on the node itself: in pods that is the "
        "pod, and CoreDNS would ask itself in a loop",
        f"{write}{'and ' if write else ''}set cluster.kubelet = "
        f'{{"resolvConf": "{name}"}}: the file with the real servers, which every node needs',
    )


def _choice(resolvers: Mapping[str, tuple[str, ...]]) -> str:
    """The first file that names servers, none of them on the node; "" for none."""
    return next(
        (
            file
            for file in (*_BEHIND, "/etc/resolv.conf")
            if resolvers.get(file)
            and not any(server.startswith(_LOOPBACK) for server in resolvers[file])
        ),
        "",
    )


def warnings(nodes: Iterable[Node], states: Mapping[str, NodeState]) -> list[str]:
    """A line for each file that others may rewrite or a run overrides, and for reboots unasked."""
    lines = []
    for node in nodes:
        if node.host not in states:
            continue
        boot = states[node.host].boot
        if boot.hosts_owner:
            lines.append(
                f"[{node.host}] /etc/hosts says `{boot.hosts_owner}`: what writes it may take the "
                "nodes' names away, and the cluster with them; remedy: have it keep the lines "
                "between `# gpuboot:` marks"
            )
        lines += [
            f"[{node.host}] {item.what}; remedy: {item.why}"
            for item in boot_overrides.decisions(states[node.host])
        ]
        lines += [
            f"[{node.host}] {line.place} sets `{line.text}`, which Kubernetes cannot do with; "
            f"{sysctls.FILE} sets {key} = {sysctls.EXPECTED[key]} after it; remedy: take that line "
            "out if nobody needs it"
            for key, line in sysctls.overridden(boot.sysctls)
        ]
        lines += [
            f"[{node.host}] {program} reboots the machine by itself when it has installed updates, "
            f"under running jobs and on several nodes at once; remedy: {_NO_REBOOT[program]}"
            for program in boot.reboots_by
        ]
    return lines


_NO_REBOOT = {
    "unattended-upgrades": 'set Unattended-Upgrade::Automatic-Reboot "false" in '
    "/etc/apt/apt.conf.d/ (`apt-config dump` shows what is in force), and reboot drained nodes",
    "dnf-automatic": "set reboot = never in /etc/dnf/automatic.conf, and reboot drained nodes",
}
