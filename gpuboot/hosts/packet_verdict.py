"""What becomes of a packet in a host's rules: it passes, is dropped, or nobody can tell from here.

The kernel asks the chains of a hook one after the other; what one accepts, the next may drop. So a
packet passes that no chain drops.
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from gpuboot.hosts.packet_rules import (
    NEVER,
    PUBLIC,
    UNKNOWN,
    Chain,
    Condition,
    PacketFilter,
    Rule,
    Table,
)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_FAMILIES = {"ip": 4, "ip6": 6}
# numbers of protocols that rules may be written with
_PROTOCOLS = {"6": "tcp", "17": "udp", "112": "vrrp", "icmpv6": "ipv6-icmp"}
# where nodes and pods are; of long sets all that lies in these is read (packet_filter.sh)
_PRIVATE = tuple(
    ipaddress.ip_network(item)
    for item in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)
_HOOKS = {
    "input": ("prerouting", "input"),
    "forward": ("prerouting", "forward"),
    "output": ("output",),
}
_SERVER_PORTS = frozenset(map(str, range(1024)))
_DEPTH = 16  # of jumps, as the kernel has it


@dataclass(frozen=True)
class Flow:
    """The first packet of a connection.

    + source, target: network of its addresses; None for any
    + iif, oif: device that it comes from, goes to; "" where that is not known
    """

    hook: Literal["input", "forward", "output"]
    version: int
    proto: str
    port: int | None = None
    source: Network | None = None
    target: Network | None = None
    iif: str = ""
    oif: str = ""


@dataclass(frozen=True)
class End:
    """Where a packet's way ends. + rule: None for the chain's policy"""

    table: Table
    chain: str
    rule: Rule | None
    accepts: bool

    @property
    def label(self) -> str:
        """Chain and rule, as a person finds them."""
        rule_text = f"`{self.rule.text}`" if self.rule else "policy drop"
        return f"{self.table.label}, chain {self.chain}: {rule_text}"


@dataclass(frozen=True)
class Judgement:
    """What becomes of a packet: neither of both where it passes.

    + drop: where it is dropped
    + doubts: rules that may decide otherwise than those behind them, and cannot be judged here
    """

    drop: End | None = None
    doubts: tuple[End, ...] = ()


def judge(rules: PacketFilter, flow: Flow) -> Judgement:
    """What becomes of a packet."""
    doubts: list[End] = []
    for table in rules.tables:
        if _FAMILIES.get(table.family, flow.version) != flow.version:
            continue
        for name, chain in table.chains.items():
            if chain.hook not in _HOOKS[flow.hook]:
                continue
            certain, ends = _walk(table, name, chain, flow, _DEPTH)
            if not certain:
                ends.append(End(table, name, None, chain.policy != "drop"))
            *possible, last = ends
            differing = [end for end in possible if end.accepts != last.accepts]
            if not (last.accepts or differing):
                return Judgement(last)
            doubts += differing
    return Judgement(None, tuple(doubts))


def _walk(table: Table, name: str, chain: Chain, flow: Flow, depth: int) -> tuple[bool, list[End]]:
    """Whether a chain decides for certain, and the ends that a packet may come to in it.

    All but the last are of rules that may not concern it; so is the last, where it is not certain.
    """
    ends: list[End] = []
    can_return = False
    for rule in chain.rules:
        meets = _meets(rule, flow)
        if meets is False:
            continue
        certain, rule_ends = _decide(table, name, rule, flow, depth)
        ends += rule_ends
        back = rule.verdict in ("return", "goto") and not certain
        if meets and (certain or back):
            return certain and not can_return, ends
        can_return = can_return or back
    return False, ends


def _decide(table: Table, name: str, rule: Rule, flow: Flow, depth: int) -> tuple[bool, list[End]]:
    if rule.verdict in ("accept", "drop"):
        return True, [End(table, name, rule, rule.verdict == "accept")]
    if rule.verdict == "unknown":
        return True, [End(table, name, rule, verdict) for verdict in (False, True)]
    target = table.chains.get(rule.target)
    if rule.verdict == "return" or target is None or not depth:
        return False, []
    return _walk(table, rule.target, target, flow, depth - 1)


def _meets(rule: Rule, flow: Flow) -> bool | None:
    answers = [_compare(condition, flow) for condition in rule.conditions]
    if False in answers:
        return False
    return None if None in answers else True


def _compare(condition: Condition, flow: Flow) -> bool | None:
    """Whether a packet meets a condition; None where that cannot be told."""
    if condition.field in (UNKNOWN, NEVER):
        return None if condition.field == UNKNOWN else False
    if condition.field == "tcp_flags":
        mask, flags = (set(item.split(",")) for item in condition.values)
        answer: bool | None = flow.proto == "tcp" and (mask & {"syn"}) == flags - {"none"}
    else:
        answers = list(_values(condition, flow))
        answer = None if None in answers else False
        answer = True if True in answers else answer
    return None if answer is None else answer != condition.negated


def _values(condition: Condition, flow: Flow) -> Iterator[bool | None]:
    flow_values = {
        "proto": flow.proto,
        "state": "new",
        "version": f"ipv{flow.version}",
        "status": "none",
        "dst_type": "local" if flow.hook == "input" else "unicast",
        "icmp": "none",
    }
    for value in condition.values:
        if value == UNKNOWN:
            yield None
        elif value == PUBLIC:
            network = flow.source if condition.field == "saddr" else flow.target
            yield None if network is None or not _private(network) else False
        elif condition.field in flow_values:
            yield value == "all" or _PROTOCOLS.get(value, value) == flow_values[condition.field]
        elif condition.field == "pkttype":
            yield value in ("host", "unicast")
        elif condition.field in ("saddr", "daddr"):
            yield _within(flow.source if condition.field == "saddr" else flow.target, value, flow)
        elif condition.field in ("iif", "oif"):
            device = flow.iif if condition.field == "iif" else flow.oif
            yield fnmatchcase(device, value) if device else (False if value == "lo" else None)
        elif condition.field == "dport":
            yield _in_range(flow.port, value)
        else:  # a source port is any, but none of those that only servers have
            yield False if value.rpartition("-")[2] in _SERVER_PORTS else None


def _private(network: Network) -> bool:
    return any(
        network.version == item.version and network.subnet_of(item)  # type: ignore[arg-type]
        for item in _PRIVATE
    )


def _within(network: Network | None, value: str, flow: Flow) -> bool | None:
    """Whether all addresses of a network are in a value: an address, a network or a range."""
    first, _, last = value.partition("-")
    parts: list[Network]
    try:
        if last:
            ends = ipaddress.ip_address(first), ipaddress.ip_address(last)
            parts = list(ipaddress.summarize_address_range(*ends))
        else:
            parts = [ipaddress.ip_network(first, strict=False)]
    except (ValueError, TypeError):
        return None
    if parts[0].version != flow.version:
        return False
    if network is None:  # any address, which is not one that a rule names alone
        if parts[0].num_addresses == 1:
            return False
        return True if parts[0].prefixlen == 0 else None
    if any(network.subnet_of(part) for part in parts):  # type: ignore[arg-type]
        return True
    return None if any(network.overlaps(part) for part in parts) else False


def _in_range(port: int | None, value: str) -> bool | None:
    first, _, last = value.partition("-")
    if not first.isdigit() or (last and not last.isdigit()):
        return None
    return port is not None and int(first) <= port <= int(last or first)
