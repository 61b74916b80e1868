"""Tables as iptables-save prints them (iptables-extensions(8))."""

import shlex
from collections.abc import Iterable, Iterator, Mapping

from gpuboot.hosts.packet_rules import UNKNOWN, Chain, Condition, Rule, Table, Verdict


def tables(lines: Iterable[str], sets: Mapping[str, list[str]]) -> list[Table]:
    """The tables in lines of iptables-save, each behind its family and program."""
    tables_by_program: dict[str, Table] = {}
    for line in lines:
        family, program, text = (*line.split(" ", 2), "", "")[:3]
        program = program.replace("iptables", f"{family}tables")
        table = tables_by_program.setdefault(program, Table(program, family, "filter"))
        if text.startswith(":"):
            name, policy = text[1:].split()[:2]
            hook = name.lower() if name in ("INPUT", "FORWARD", "OUTPUT") else ""
            table.chains[name] = Chain(hook, policy.lower() if hook else "")
        elif text.startswith("-A "):
            name = text.split()[1]
            rule = _rule(text, table.chains, sets)
            if rule and name in table.chains:
                table.chains[name].rules.append(rule)
    return list(tables_by_program.values())


_OPTIONS = {
    "-s": "saddr", "-d": "daddr", "-i": "iif", "-o": "oif", "-p": "proto",
    "--dport": "dport", "--dports": "dport", "--sport": "sport", "--sports": "sport",
    "--ctstate": "state", "--state": "state", "--dst-type": "dst_type", "--pkt-type": "pkttype",
    "--src-range": "saddr", "--dst-range": "daddr",
}  # fmt: skip
# what matches without their options mean nothing
_PLAIN_MATCHES = {
    "addrtype", "comment", "conntrack", "icmp", "icmp6", "iprange", "limit", "multiport", "pkttype",
    "recent", "set", "state", "tcp", "udp",
}  # fmt: skip
_VERDICTS: Mapping[str, Verdict] = {
    "ACCEPT": "accept", "DROP": "drop", "REJECT": "drop", "TARPIT": "drop", "RETURN": "return",
    "QUEUE": "unknown", "NFQUEUE": "unknown",
}  # fmt: skip


def _rule(text: str, chains: Mapping[str, Chain], sets: Mapping[str, list[str]]) -> Rule | None:
    """A rule; None for one that only logs, marks or counts."""
    try:
        words = shlex.split(text)[2:]
    except ValueError:
        return Rule(text, "unknown")
    # what a rule of nft's own has and iptables does not know
    conditions = [Condition(UNKNOWN)] if "[unsupported " in text else []
    for option, arguments, negated in _options(words):
        if option in ("-j", "-g"):
            target = arguments[0] if arguments else ""
            if target in _VERDICTS:
                return Rule(text, _VERDICTS[target], conditions=tuple(conditions))
            if target not in chains:
                return None
            verdict: Verdict = "jump" if option == "-j" else "goto"
            return Rule(text, verdict, target, tuple(conditions))
        conditions += _conditions(option, arguments, negated, sets)
    return None


def _options(words: list[str]) -> Iterator[tuple[str, list[str], bool]]:
    """Each option with its arguments, and whether it is negated."""
    place = 0
    while place < len(words):
        negated = words[place] == "!"
        place += negated
        option = words[place] if place < len(words) else ""
        end = place + 1
        while end < len(words) and words[end] != "!" and not words[end].startswith("-"):
            end += 1
        yield option, words[place + 1 : end], negated
        place = end


def _conditions(
    option: str, arguments: list[str], negated: bool, sets: Mapping[str, list[str]]
) -> list[Condition]:
    first = arguments[0] if arguments else ""
    if option == "-m":
        return [] if first in _PLAIN_MATCHES else [Condition(UNKNOWN)]
    if option == "--comment":
        return []
    if option == "--tcp-flags" and len(arguments) == 2:
        mask, flags = (item.lower() for item in arguments)
        return [Condition("tcp_flags", (mask, flags), negated)]
    if option == "--match-set" and len(arguments) == 2:
        name, direction = arguments
        if direction in ("src", "dst") and name in sets:
            return [Condition(f"{direction[0]}addr", tuple(sets[name]), negated)]
        return [Condition(UNKNOWN)]
    if option in _OPTIONS and arguments:
        values = tuple(value.replace(":", "-") for value in first.lower().split(","))
        if _OPTIONS[option] in ("saddr", "daddr", "iif", "oif"):
            values = (first.replace("+", "*") if option in ("-i", "-o") else first,)
        return [Condition(_OPTIONS[option], values, negated)]
    return [Condition(UNKNOWN)]
