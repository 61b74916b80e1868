"""Reading the rules by which a host drops packets, from what nft and iptables print."""

from gpuboot.hosts import iptables_rules, nft_rules
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.packet_rules import PacketFilter


def parse(values: Fields) -> PacketFilter:
    """What `deploys/parts/node/packet_filter.sh` printed, be it among other lines."""
    sets: dict[str, list[str]] = {}
    for line in values.all("filter_set"):
        name, _, member = line.partition(" ")
        sets.setdefault(name, []).extend([member] if member else [])
    nft, iptables = [], []
    for line in values.raw("filter_rule"):
        if line.startswith("nft "):
            nft.append(line.removeprefix("nft "))
        else:
            iptables.append(line)
    tables = (*iptables_rules.tables(iptables, sets), *nft_rules.tables(nft))
    return PacketFilter(tables, tuple(values.all("filter_unread")))
