"""Whether the GPU Operator has carried its values out, by what its DaemonSets are made of.

ClusterPolicy's `status.state` stays "ready" until the operator has looked at a changed policy, and
has no observedGeneration (gpu-operator v26.7.0, controllers/clusterpolicy_controller.go:312); the
hash that the operator puts on its DaemonSets (object_controls.go:4791) is of objects that it alone
renders. So each value is looked for where the operator puts it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from gpuboot.cluster.objects import amount

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Operand:
    """A DaemonSet that the operator makes.

    + chart: name and version of the chart whose ClusterPolicy it was made from
    + template: its pod template
    """

    namespace: str
    name: str
    chart: str
    template: Json


@dataclass(frozen=True)
class ExpectedOperand:
    """What must be in a DaemonSet when the operator has carried its values out.

    + container: the one that the values are about
    + version: how its image's name ends; "" for the chart's own
    + env: of the container; None: the variable must not be there
    + config: the device plugin's configuration; "" for none; None: it does not read one
    + args, host_network: None: the operator's own choice
    """

    container: str
    chart: str
    version: str = ""
    env: Mapping[str, str | None] = field(default_factory=dict)
    resources: Json = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Json] = ()
    config: str | None = None
    args: Sequence[str] | None = None
    host_network: bool | None = None


def missing(operand: Operand, expected: ExpectedOperand) -> tuple[str, ...]:
    """What of the values is not in a DaemonSet yet."""
    return tuple(_missing(operand, expected))


def _missing(operand: Operand, expected: ExpectedOperand) -> Iterator[str]:
    if operand.chart != expected.chart:
        yield f"chart {expected.chart}"
    spec = operand.template.get("spec", {})
    containers = {item["name"]: item for item in spec.get("containers", ())}
    main = containers.get(expected.container, {})
    if not main.get("image", "").endswith(expected.version):
        yield f"image {expected.version}"
    env = _env(main)
    yield from (name for name, value in expected.env.items() if env.get(name) != value)
    if expected.args is not None and list(main.get("args", ())) != list(expected.args):
        yield "args"
    if expected.resources and not _same_amounts(main.get("resources", {}), expected.resources):
        yield "resources"
    annotations = operand.template.get("metadata", {}).get("annotations", {})
    yield from (
        name for name, text in expected.annotations.items() if annotations.get(name) != text
    )
    if any(item not in spec.get("tolerations", ()) for item in expected.tolerations):
        yield "tolerations"
    manager = containers.get("config-manager", {})
    if expected.config is not None and _env(manager).get("DEFAULT_CONFIG", "") != expected.config:
        yield f"configuration {expected.config or 'none'}"
    host_network = bool(spec.get("hostNetwork"))
    if expected.host_network is not None and host_network != expected.host_network:
        yield "hostNetwork"


def _env(container: Json) -> dict[str, str | None]:
    return {item["name"]: item.get("value", "") for item in container.get("env", ())}


def _same_amounts(actual: Json, expected: Json) -> bool:
    # as they are written first: the library that computes with them takes 0.2 s of CPU to load
    return actual == expected or _amounts(actual) == _amounts(expected)


def _amounts(resources: Json) -> dict[tuple[str, str], Decimal]:
    """Requests and limits as numbers: the API server writes 1000m as 1."""
    return {
        (kind, name): amount(str(quantity))
        for kind in ("requests", "limits")
        for name, quantity in (resources.get(kind) or {}).items()
    }
