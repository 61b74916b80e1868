"""Parts of the API that other programs serve, behind the API server: its APIServices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpuboot.cluster.objects import Condition, Json, parse_conditions

PATH = "/apis/apiregistration.k8s.io/v1/apiservices"


@dataclass(frozen=True)
class Extension:
    """An APIService that a Service serves.

    + service: `namespace/name`; + available: whether the API server reaches it, and why not
    """

    name: str
    service: str
    available: Condition


def parse(items: Iterable[Json]) -> Iterator[Extension]:
    """The APIServices of the API that a Service serves, not the API server itself."""
    for item in items:
        if not (service := item["spec"].get("service")):
            continue
        yield Extension(
            item["metadata"]["name"],
            f"{service['namespace']}/{service['name']}",
            parse_conditions(item).get("Available", Condition()),
        )
