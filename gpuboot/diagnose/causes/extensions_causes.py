"""Parts of the API that another program serves, and that does not answer."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts

_STARTS_S = 60.0  # what serves it may take that long to start


def unavailable(facts: Facts) -> Iterator[Sighting]:
    """APIServices whose Service the API server does not reach, or that has nobody behind it."""
    for extension in facts.cluster.extensions:
        condition = extension.available
        if condition.status in ("", "True"):
            continue
        age_s = facts.cluster.now - condition.since
        namespace, _, service = extension.service.partition("/")
        yield Sighting(
            evidence=(
                f"APIService {extension.name}, served by Service {extension.service}: not "
                f"available for {age_s:.0f} s: {condition.reason}: {condition.message}",
            ),
            confidence=Confidence.CERTAIN if age_s > _STARTS_S else Confidence.LIKELY,
            values={"extension": extension.name, "space": namespace, "service": service},
        )


TABLE = (
    Cause(
        id="api-extension-unavailable",
        meaning="a part of the API that another program serves does not answer: `kubectl top` and "
        "HPAs have no figures, and no namespace can be deleted",
        find=unavailable,
        remedy="see why the pods behind its Service are not ready. Where what served it was "
        "removed for good, `kubectl delete apiservice` of that name ends the wait of all "
        "namespaces",
        command="kubectl describe apiservice {extension}; "
        "kubectl -n {space} get service,endpointslices,pods",
        explains=("namespace-terminating",),
    ),
)
