"""The metrics that a PromQL expression reads, to compare with what is collected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
      (?P<blank>\s+|\#[^\n]*)
    | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
    | (?P<variable>\$\{[^}]*\}|\$\w+|\[\[\w+\]\])          # Grafana's, not PromQL's
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\w*)  # also 5m and 0x1f
    | (?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
    | (?P<mark>=~|!~|!=|==|<=|>=|[-+*/%^()\[\]{},=<>@:])
    """,
    re.VERBOSE,
)
# Words that are followed by a list of label names, not of metrics.
_LISTS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
_WORDS = {"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan", "anchored", "smoothed"}
_PLAIN_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_CLOSING = {"{": "}", "[": "]", "(": ")"}


class ExpressionError(ValueError):
    """An expression whose metrics cannot be told."""


class _Token(NamedTuple):
    kind: str
    text: str


def metric_names(expression: str) -> set[str]:
    """The metrics that a PromQL expression reads.

    + expression: one query; Grafana's variables may stand in it

    Function names, label names, strings and durations are not metrics; a name given as
    `{__name__="…"}`, `{__name__=~"a|b"}` or `{"…"}` is. Raises `ExpressionError` for text that is
    not PromQL's, and for a pattern of names that is more than alternatives.
    """
    tokens = list(_tokens(expression))
    names: set[str] = set()
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.text in ("{", "["):
            end = _closing(tokens, place, expression)
            if token.text == "{":
                names |= _named_in_matchers(tokens[place + 1 : end], expression)
            place = end
        elif token.kind == "name":
            following = tokens[place + 1].text.lower() if place + 1 < len(tokens) else ""
            if token.text.lower() in _LISTS:
                if following == "(":
                    place = _closing(tokens, place + 1, expression)
            elif not _is_word(token.text, following):
                names.add(token.text)
        place += 1
    return names


def not_collected(expression: str, known_metrics: Iterable[str]) -> set[str]:
    """The metrics of an expression that are not among `known_metrics`.

    + expression: see `metric_names`, which tells what is raised
    + known_metrics: names that exist, e.g. `collected(settings)` and those of the recording rules
    """
    return metric_names(expression) - set(known_metrics)


def _is_word(text: str, following: str) -> bool:
    """Whether a name is an operator, a function or an aggregation, by what follows it."""
    return text.lower() in _WORDS or following == "(" or following in ("by", "without")


def _tokens(expression: str) -> Iterator[_Token]:
    place = 0
    while place < len(expression):
        match = _TOKEN.match(expression, place)
        if match is None:
            raise ExpressionError(f"no PromQL from {expression[place:]!r}")
        if match.lastgroup != "blank":
            yield _Token(str(match.lastgroup), match[0])
        place = match.end()


def _closing(tokens: list[_Token], start: int, expression: str) -> int:
    """Where the bracket at `start` ends. Durations and label lists nest only in themselves."""
    opening, depth = tokens[start].text, 0
    for place in range(start, len(tokens)):
        if tokens[place].kind == "mark":
            depth += (tokens[place].text == opening) - (tokens[place].text == _CLOSING[opening])
        if depth == 0:
            return place
    raise ExpressionError(f"{opening} is never closed in {expression!r}")


def _named_in_matchers(inside: list[_Token], expression: str) -> set[str]:
    names: set[str] = set()
    for place, token in enumerate(inside):
        before = inside[place - 1].text if place else ","
        after = inside[place + 1].text if place + 1 < len(inside) else ","
        if token.kind == "string" and before == "," and after == ",":
            names.add(token.text[1:-1])
        if token.text == "__name__" and place + 2 < len(inside):
            names |= _name_matcher(after, inside[place + 2].text[1:-1], expression)
    return names


def _name_matcher(operator: str, value: str, expression: str) -> set[str]:
    names = value.split("|") if operator == "=~" else [value]
    plain = all(_PLAIN_NAME.fullmatch(name) for name in names)
    if operator not in ("=", "=~") or not plain:
        raise ExpressionError(f'__name__{operator}"{value}" may be any metric in {expression!r}')
    return set(names)
