"""The commands that open a node's firewall for the cluster, in the words of what manages it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpuboot.hosts import proxy
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.packet_rules import Table
from gpuboot.hosts.packet_verdict import End, Flow

_MAX_SINGLE_NODES = 4  # more nodes than that are named by their network


@dataclass(frozen=True)
class Opening:
    """Ports to open. + ends: addresses and networks at the other end; + ports: none of VRRP"""

    proto: str
    ports: tuple[str, ...]
    ends: tuple[str, ...]


def remedy(hook: str, end: End, flows: Sequence[Flow], state: NodeState, pods: str) -> str:
    """What a person runs on the node.

    + end: where the flows are dropped; + pods: network of all pods (`cluster.pod_cidr`)
    """
    text = f"run there: {_joined(commands(hook, end, flows, state, pods))}"
    if end.table.of_ufw or end.table.name == "firewalld":
        return text
    if end.table.program == "nft":
        return (
            f"{text}; for the next boot put these rules into the file that the table comes from "
            "(/etc/nftables.conf)"
        )
    return (
        f"{text}; for the next boot store them where these rules come from "
        "(`netfilter-persistent save`, or `service iptables save`)"
    )


def commands(hook: str, end: End, flows: Sequence[Flow], state: NodeState, pods: str) -> list[str]:
    """The commands alone, for the time until the next boot where nothing stores them."""
    table, openings = end.table, _openings(hook, flows, state)
    if table.of_ufw:
        return list(_ufw(hook, openings, pods))
    if table.name == "firewalld":
        return list(_firewalld(hook, end, openings, pods))
    if table.program == "nft":
        return list(_nft(hook, end, openings, pods))
    return list(_iptables(hook, table, openings, pods))


def _joined(commands: Iterable[str]) -> str:
    return ", ".join(f"`{command}`" for command in commands)


def _openings(hook: str, flows: Sequence[Flow], state: NodeState) -> list[Opening]:
    """Ports with the same other ends, together."""
    by_port: dict[tuple[str, str], list[str]] = {}
    for flow in flows:
        end, target = flow.source, flow.target
        if hook == "output":
            end, target = target, end
        ends = by_port.setdefault((flow.proto, str(flow.port or "")), [])
        ends.append(str(end).removesuffix(f"/{_bits(flow)}"))
    own_address = str(target).partition("/")[0]  # the same for all: this node's
    by_ends: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (proto, port), ends in by_port.items():
        nodes = list(dict.fromkeys(item for item in ends if "/" not in item))
        if len(nodes) > _MAX_SINGLE_NODES:
            nodes = proxy.nearby(own_address, nodes, (network for network, _ in state.routes))
        pods = dict.fromkeys(item for item in ends if "/" in item)
        for group in (tuple(nodes), tuple(pods)):
            if group:
                by_ends.setdefault((proto, group), []).append(port)
    return [
        Opening(proto, tuple(port for port in ports if port), ends)
        for (proto, ends), ports in by_ends.items()
    ]


def _bits(flow: Flow) -> int:
    return 32 if flow.version == 4 else 128


def _ufw(hook: str, openings: Iterable[Opening], pods: str) -> Iterator[str]:
    if hook == "forward":
        yield f"ufw route allow from {pods}"
        yield f"ufw route allow to {pods}"
        return
    for item in openings:
        for end in item.ends:
            ports = f" port {','.join(item.ports)}" if item.ports else ""
            if hook == "output":
                yield f"ufw allow out proto {item.proto} to {end}{ports}"
            else:
                yield f"ufw allow proto {item.proto} from {end} to any{ports}"


def _firewalld(hook: str, end: End, openings: Iterable[Opening], pods: str) -> Iterator[str]:
    if hook == "output":
        yield "firewall-cmd --list-all-policies"  # one of them drops it; zones say nothing of it
        return
    # filter_IN_public: the zone of the device that the packets come by
    zone = end.chain.removeprefix("filter_IN_").removeprefix("filter_FWD_")
    for item in openings:
        if hook == "forward" or pods in item.ends:
            continue
        options = [f"--add-port={port}/{item.proto}" for port in item.ports]
        options = options or [f"--add-protocol={item.proto}"]
        yield f"firewall-cmd --permanent --zone={zone} {' '.join(options)}"
    if hook == "forward" or any(pods in item.ends for item in openings):
        yield f"firewall-cmd --permanent --zone=trusted --add-source={pods}"
    yield "firewall-cmd --reload"


def _nft(hook: str, end: End, openings: Iterable[Opening], pods: str) -> Iterator[str]:
    table = end.table
    bases = [name for name, chain in table.chains.items() if chain.hook == hook]
    base = end.chain if end.chain in bases or not bases else bases[0]
    insert = f"nft insert rule {table.family} {table.name} {base}"
    if hook == "forward":
        ip = "ip6" if ":" in pods else "ip"
        yield f"{insert} {ip} saddr {pods} accept"
        yield f"{insert} {ip} daddr {pods} accept"
        return
    side = "daddr" if hook == "output" else "saddr"
    for item in openings:
        ip = "ip6" if ":" in item.ends[0] else "ip"
        matcher = f"{item.proto} dport {_braced(item.ports)}" if item.ports else "meta l4proto vrrp"
        yield f"{insert} {ip} {side} {_braced(item.ends)} {matcher} accept"


def _braced(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{{ {', '.join(items)} }}"


def _iptables(hook: str, table: Table, openings: Iterable[Opening], pods: str) -> Iterator[str]:
    if hook == "forward":
        chain = "DOCKER-USER" if "DOCKER-USER" in table.chains else "FORWARD"
        yield f"{table.program} -I {chain} -s {pods} -j ACCEPT"
        yield f"{table.program} -I {chain} -d {pods} -j ACCEPT"
        return
    side = "-d" if hook == "output" else "-s"
    for item in openings:
        ports = f" -m multiport --dports {','.join(item.ports)}" if item.ports else ""
        yield (
            f"{table.program} -I {hook.upper()} -p {item.proto} {side} {','.join(item.ends)}"
            f"{ports} -j ACCEPT"
        )
