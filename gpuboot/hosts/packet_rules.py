"""The rules by which a host drops packets, whichever program wrote them.

Rules are read from the kernel, so what wrote them (ufw, firewalld, Docker, a file) does not matter.
What a rule says and its parser does not know becomes a condition `UNKNOWN`: it is never guessed.
"""

from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["accept", "drop", "jump", "goto", "return", "unknown"]
UNKNOWN = "unknown"  # a condition that nobody here can judge; as a value: a set that was not read
PUBLIC = "public"  # a value: addresses outside of private networks, not read
NEVER = "never"  # a condition that no packet between nodes meets


@dataclass(frozen=True)
class Condition:
    """What a packet has to be. + field: of `gpuboot.hosts.packet_verdict`, or `UNKNOWN`, `NEVER`"""

    field: str
    values: tuple[str, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Rule:
    """What becomes of packets that meet all conditions. + target: chain of jump and goto"""

    text: str
    verdict: Verdict
    target: str = ""
    conditions: tuple[Condition, ...] = ()


@dataclass
class Chain:
    """Rules in their order. + hook, policy: of one that the kernel calls; "" for others"""

    hook: str = ""
    policy: str = ""
    rules: list[Rule] = field(default_factory=list)


@dataclass
class Table:
    """Chains that can jump to each other.

    + program: that shows and changes it: nft, iptables, ip6tables, iptables-legacy, …
    + family: ip, ip6, or inet for both
    """

    program: str
    family: str
    name: str
    chains: dict[str, Chain] = field(default_factory=dict)

    @property
    def of_ufw(self) -> bool:
        """Whether ufw wrote rules of it."""
        return any(name.startswith(("ufw-before", "ufw6-before")) for name in self.chains)

    @property
    def label(self) -> str:
        """How a person finds it."""
        if self.program == "nft":
            return f"{self.family} {self.name}"
        return f"{self.program} by ufw" if self.of_ufw else self.program


@dataclass(frozen=True)
class PacketFilter:
    """All tables. + unread: programs whose rules are in the kernel and could not be read"""

    tables: tuple[Table, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def drops(self) -> bool:
        """Whether any rule or policy drops anything."""
        chains = [chain for table in self.tables for chain in table.chains.values()]
        rules = [rule for chain in chains for rule in chain.rules]
        return any(chain.policy == "drop" for chain in chains) or any(
            rule.verdict in ("drop", "unknown") for rule in rules
        )
