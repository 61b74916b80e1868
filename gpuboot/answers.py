"""What the facts' scripts print: "key<TAB>value" lines, of which a key may have several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


def fields(lines: Iterable[str]) -> dict[str, list[str]]:
    """The values of each key, in order; a line without a tab is passed over."""
    values: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        key, tab, value = line.partition("\t")
        if tab:
            values[key].append(value.strip())
    return values
