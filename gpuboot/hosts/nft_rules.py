"""Tables as `nft list ruleset` prints them (nft(8))."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuboot.hosts.packet_rules import NEVER, UNKNOWN, Chain, Condition, Rule, Table, Verdict

_WORD = re.compile(r'"[^"]*"|[{}]|,|[^\s{},"]+')
_HOOK = re.compile(r"type filter hook (\w+) .*?;(?: policy (\w+);)?")
_VERDICTS: Mapping[str, Verdict] = {
    "accept": "accept", "drop": "drop", "reject": "drop", "return": "return", "queue": "unknown",
    "jump": "jump", "goto": "goto",
}  # fmt: skip
# the words of an expression -> field
_EXPRESSIONS = {
    "ip saddr": "saddr", "ip6 saddr": "saddr", "ip daddr": "daddr", "ip6 daddr": "daddr",
    "ip protocol": "proto", "ip6 nexthdr": "proto", "meta l4proto": "proto",
    "tcp dport": "dport", "udp dport": "dport", "th dport": "dport", "sctp dport": "dport",
    "tcp sport": "sport", "udp sport": "sport", "th sport": "sport", "sctp sport": "sport",
    "iifname": "iif", "iif": "iif", "oifname": "oif", "oif": "oif",
    "ct state": "state", "ct status": "status", "meta nfproto": "version",
    "meta pkttype": "pkttype", "fib daddr type": "dst_type",
    "icmp type": "icmp", "icmpv6 type": "icmp", "icmp code": "icmp", "icmpv6 code": "icmp",
}  # fmt: skip
# what the first word of an expression says beside it
_IMPLIED = {
    "ip": Condition("version", ("ipv4",)), "ip6": Condition("version", ("ipv6",)),
    "tcp": Condition("proto", ("tcp",)), "udp": Condition("proto", ("udp",)),
    "sctp": Condition("proto", ("sctp",)), "icmp": Condition("proto", ("icmp",)),
    "icmpv6": Condition("proto", ("ipv6-icmp",)),
}  # fmt: skip
# statements that neither match nor decide, with how many words follow
_ASIDE = {"comment": 1, "log": 0, "prefix": 1, "level": 1, "group": 1, "snaplen": 1,
          "queue-threshold": 1, "notrack": 0, "continue": 0}  # fmt: skip


def tables(lines: Iterable[str]) -> list[Table]:
    """The tables in the lines that nft printed."""
    parsed_tables: list[Table] = []
    sets: dict[str, str] = {}
    chain: Chain | None = None
    name = elements = ""
    for line in map(str.strip, lines):
        words = line.split()
        if elements or line.startswith("elements = {"):  # of the set above, on one line or several
            elements = f"{elements} {line}"
            if "}" in line:
                sets[name], elements = elements.partition("{")[2].rpartition("}")[0], ""
        elif line.endswith("{") and len(words) > 2:
            name, chain = words[1], None
            if words[0] == "table":
                parsed_tables.append(Table("nft", words[1], words[2]))
                sets = {}
            elif words[0] == "chain" and parsed_tables:
                chain = parsed_tables[-1].chains[name] = Chain()
            else:
                sets[name] = ""
        elif chain is not None and (hook := _HOOK.match(line)):
            chain.hook, chain.policy = hook[1], hook[2] or "accept"
        elif chain is not None and line not in ("", "}") and not line.startswith(("type ", "#")):
            chain.rules += _Reader(line, sets).rules()
    return parsed_tables


@dataclass
class _Reader:
    """Reads one rule. + sets: those of the table, by name, each with the text of its elements"""

    text: str
    sets: Mapping[str, str]
    words: list[str] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)

    def rules(self) -> list[Rule]:
        """The rule, or one for each entry of a map of verdicts; none where nothing is decided."""
        self.words = _WORD.findall(self.text)
        while self.words:
            word = self.words.pop(0)
            if word in _VERDICTS:
                target = self.words.pop(0) if word in ("jump", "goto") and self.words else ""
                return [Rule(self.text, _VERDICTS[word], target, tuple(self.conditions))]
            if word == "counter":  # packets 0 bytes 0
                del self.words[: 4 * (self.words[:1] == ["packets"])]
            elif word in _ASIDE:
                del self.words[: _ASIDE[word]]
            elif (entries := self._condition(word)) is not None:
                return entries
        return []

    def _condition(self, word: str) -> list[Rule] | None:
        """Read one condition; the rules of a map of verdicts, which ends a rule."""
        expression = self._expression(word)
        if word in _IMPLIED:
            self.conditions.append(_IMPLIED[word])
        if expression == "tcp flags":
            self.conditions.append(self._flags())
        elif word == "fib" and "missing" in self.words[:6]:
            del self.words[: self.words.index("missing") + 1]
            self.conditions.append(Condition(NEVER))  # no way back: not between nodes
        elif expression not in _EXPRESSIONS:
            self.conditions.append(Condition(UNKNOWN))
        elif self.words[:1] == ["vmap"]:
            del self.words[0]
            return self._entries(_EXPRESSIONS[expression])
        else:
            self.conditions.append(self._comparison(_EXPRESSIONS[expression]))
        return None

    def _expression(self, word: str) -> str:
        """The longest expression that begins with a word, whose other words are taken."""
        if word == "meta" and self.words and self.words[0] in _EXPRESSIONS:
            word = self.words.pop(0)
        for length in (2, 1, 0):
            expression = " ".join([word, *self.words[:length]])
            if expression in _EXPRESSIONS or expression == "tcp flags":
                del self.words[:length]
                return expression
        return word

    def _comparison(self, name: str) -> Condition:
        negated = self.words[:1] == ["!="]
        if self.words and self.words[0] in ("!=", "=="):
            del self.words[0]
        if self.words and self.words[0] in ("<", ">", "<=", ">=", "&", "."):
            return Condition(UNKNOWN)
        return Condition(name, tuple(self._values()), negated)

    def _values(self) -> list[str]:
        """The values to compare with: one, several with commas, a set in braces or a named set."""
        if self.words[:1] == ["{"]:
            return [" ".join(item) for item in _items(self._braced())]
        values = [self.words.pop(0)] if self.words else [UNKNOWN]
        while self.words[:1] == [","]:
            values += self.words[1:2]
            del self.words[:2]
        if values[0].startswith("@"):
            items = _items(_WORD.findall(self.sets.get(values[0][1:], UNKNOWN)))
            return [_value(item) for item in items]
        return [value.strip('"') for value in values]

    def _braced(self) -> list[str]:
        end = self.words.index("}") if "}" in self.words else len(self.words)
        inside = self.words[1:end]
        del self.words[: end + 1]
        return inside

    def _entries(self, name: str) -> list[Rule]:
        """The rules of `key : verdict` in braces or in a named map."""
        if self.words[:1] == ["{"]:
            inside = self._braced()
        else:
            map_name = self.words.pop(0)[1:] if self.words else ""
            inside = _WORD.findall(self.sets.get(map_name, ""))
        rules = []
        for item in _items(inside):
            key, verdict = _split(item)
            if verdict and verdict[0] in _VERDICTS:
                conditions = (*self.conditions, Condition(name, (key,)))
                target = "".join(verdict[1:2])
                rules.append(Rule(self.text, _VERDICTS[verdict[0]], target, conditions))
        return rules

    def _flags(self) -> Condition:
        """`tcp flags [!=] FLAGS / MASK`, as a condition of mask and flags."""
        negated = self.words[:1] == ["!="]
        text = " ".join(self.words[negated:])
        form = re.match(r"([a-z]+(?: , [a-z]+)*) / ([a-z]+(?: , [a-z]+)*)", text)
        if not form:
            return Condition(UNKNOWN)
        del self.words[: negated + len(form[0].split())]
        flags, mask = (item.replace(" ", "") for item in form.groups())
        return Condition("tcp_flags", (mask, flags), negated)


def _items(words: Iterable[str]) -> list[list[str]]:
    """Words between commas."""
    items: list[list[str]] = [[]]
    for word in words:
        if word == ",":
            items.append([])
        else:
            items[-1].append(word.strip('"'))
    return [item for item in items if item]


def _value(item: list[str]) -> str:
    """An element of a named set, less its timeout, counter and comment."""
    if "." in item:
        return " ".join(item)
    return item[0]


def _split(item: list[str]) -> tuple[str, list[str]]:
    """Key and verdict of a map's entry."""
    place = item.index(":") if ":" in item else len(item)
    return (item[0] if item else ""), item[place + 1 :]
