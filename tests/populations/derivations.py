"""Which values of populations are derived, and from what."""

from __future__ import annotations

from collections.abc import Iterator

from tests.populations.model import Population, Source


def derivations(populations: list[Population]) -> Iterator[tuple[Source, set[str]]]:
    """Each derivation with the fields whose values, or whose absence, stand on it."""
    by_source: dict[Source, set[str]] = {}
    for population in populations:
        for group in (*population.idle, *population.busy):
            by_source.setdefault(group.source, set()).update(group.of)
        for lack in (*population.lacks, *population.mig_lacks):
            by_source.setdefault(lack.source, set()).update(lack.fields)
    yield from ((source, fields) for source, fields in by_source.items() if not source.recorded)
