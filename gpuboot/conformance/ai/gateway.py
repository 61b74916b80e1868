"""Requests to models through a Gateway: by weight, and by a header that names the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from gpuboot.cluster.objects import Json, parse_conditions
from gpuboot.conformance.ai import service
from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.conformance.ai.service import LABELS
from gpuboot.conformance.suite_manifests import restricted

Object = dict[str, Any]

API = "/apis/gateway.networking.k8s.io/v1"
GATEWAY = "gateway"
BACKENDS = ("model-a", "model-b")
WEIGHTS = (3, 1)
REQUESTS = 40  # of which none for model-b is one in a hundred thousand
END = "gpuboot: end"
_TRIES = 20
_HOST = "models.gpuboot.test"
_HEADER = "x-model"
REMEDY = (
    "install an implementation of the Gateway API (Envoy Gateway, Cilium, Traefik with an entry "
    "point on port 80), with addresses for Services of type LoadBalancer; then run again"
)
# timeout beside it: the -T of Debian's static busybox 1.35 crashes
_SCRIPT = f"""\
ask() {{
  busybox timeout 5 busybox wget -qO- --header "Host: {_HOST}" "$@" "http://$0{service.INFER}" ||
    echo none
}}
to_b() {{ ask --header '{_HEADER}: {BACKENDS[1]}'; }}
# a Gateway is programmed before its proxy knows the route
number=0
while [ "$(ask)" = none ] || [ "$(to_b)" = none ]; do
  number=$((number + 1)); [ $number -le {_TRIES} ] || break
  busybox sleep 2
done
number=0
while [ $number -lt {REQUESTS} ]; do
  echo "weight $(ask)"; number=$((number + 1))
done
for _ in 1 2 3 4 5; do echo "header $(to_b)"; done
echo "{END}"
"""


def accepted_class(items: Iterable[Json]) -> str:
    """The first GatewayClass that a controller has accepted; ""."""
    names = (
        str(item["metadata"]["name"])
        for item in items
        if "Accepted" in (conditions := parse_conditions(item))
        and conditions["Accepted"].status == "True"
    )
    return next(names, "")


def gateway(class_name: str) -> Object:
    """The Gateway."""
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": GATEWAY, "labels": dict(LABELS)},
        "spec": {"gatewayClassName": class_name, "listeners": [listener]},
    }


def route() -> Object:
    """Requests with the header go to the model that it names, others by weight."""
    references = [{"name": name, "port": service.PORT} for name in BACKENDS]
    by_header = {
        "matches": [{"headers": [{"name": _HEADER, "value": BACKENDS[1]}]}],
        "backendRefs": [references[1]],
    }
    by_weight = {
        "backendRefs": [
            {**reference, "weight": weight}
            for reference, weight in zip(references, WEIGHTS, strict=True)
        ]
    }
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "models", "labels": dict(LABELS)},
        "spec": {
            "parentRefs": [{"name": GATEWAY}],
            "hostnames": [_HOST],
            "rules": [by_header, by_weight],
        },
    }


def backend_service(name: str) -> Object:
    """The Service of a model."""
    return {
        "metadata": {"name": name, "labels": dict(LABELS)},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": service.PORT}]},
    }


def client(image: str, address: str) -> Object:
    """The pod that sends requests. + address: of the Gateway"""
    host = f"[{address}]" if ":" in address else address
    container = {
        "name": "client",
        "image": image,
        "command": ["sh", "-c", _SCRIPT, host],
        "securityContext": restricted(),
    }
    return {
        "metadata": {"name": "client", "labels": dict(LABELS)},
        "spec": {
            "containers": [container],
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "activeDeadlineSeconds": 600,
        },
    }


def address(item: Json) -> str:
    """The first address of a Gateway that is programmed; "" before that."""
    status = item.get("status") or {}
    conditions = parse_conditions(item)
    if "Programmed" not in conditions or conditions["Programmed"].status != "True":
        return ""
    return next((str(entry["value"]) for entry in status.get("addresses") or ()), "")


def evaluate(class_name: str, log: str) -> Result:
    """Whether requests went by weight and by header. + log: of the client"""
    name = "ai_inference"
    counts = Counter(line for line in log.splitlines() if line.startswith(("weight ", "header ")))
    by_weight = [counts[f"weight {backend}"] for backend in BACKENDS]
    by_header = [counts[f"header {backend}"] for backend in BACKENDS]
    lines = (
        f"GatewayClass {class_name}; HTTPRoute with weights {WEIGHTS[0]}:{WEIGHTS[1]}",
        f"{REQUESTS} requests by weight: {by_weight[0]} to {BACKENDS[0]}, {by_weight[1]} to "
        f"{BACKENDS[1]}",
        f"5 requests with the header {_HEADER}: {BACKENDS[1]}: {by_header[1]} arrived there",
    )
    if by_header == [0, 5] and sum(by_weight) == REQUESTS and by_weight[0] > by_weight[1] > 0:
        summary = "A Gateway split traffic by weight and routed it by a header."
        return Result(name, "pass", summary, lines)
    remedy = f"`kubectl describe gatewayclass {class_name}` and its controller's log tell why"
    return Result(name, "fail", "; ".join(lines[1:]), lines, remedy)
