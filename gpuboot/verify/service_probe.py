"""A pod on each GPU node that resolves a name and connects to a Service."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpuboot.config.settings import Settings
from gpuboot.kubernetes.api import Cluster, ClusterError
from gpuboot.verify import kube_objects
from gpuboot.verify.evidence import KubeNode, ServiceProbeResult
from gpuboot.verify.session import Session, pod_name
from gpuboot.verify.workload import pod_manifest

# The API server's own Service, which every cluster has.
SERVICE = "/api/v1/namespaces/default/services/kubernetes"
TOOLS = ("getent", "bash", "timeout")
_MARKER = "gpuboot-services:"
# A pod's first packets may come before its network is whole, so three tries. bash connects itself:
# NVIDIA's image (Ubuntu's base: bash, libc-bin, coreutils) has no curl.
_SCRIPT = f"""\
name=$1 address=$2 port=$3
tell() {{ echo "{_MARKER} $*"; }}
try() {{ for _ in 1 2 3; do timeout 10 "$@" >/dev/null 2>&1 && return 0; sleep 1; done; return 1; }}
for tool in {" ".join(TOOLS)}; do
  command -v "$tool" >/dev/null || {{ tell lacks "$tool"; exit 0; }}
done
if try getent ahosts "$name"; then tell resolved; else tell unresolved; fi
if try bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$address" "$port"
then tell connected; else tell unconnected; fi
"""
_TIMEOUT_S = 90  # twice three tries of ten seconds, and the pod's start
_POLL_S = 1.0


class ServiceProbe:
    """A pod on each GPU node, which tries DNS and a Service.

    + session: where they are made
    """

    def __init__(self, cluster: Cluster, session: Session, settings: Settings) -> None:
        self._cluster = cluster
        self._session = session
        self._settings = settings
        self._started: list[ServiceProbeResult] = []

    def start(self, names: Iterable[str], nodes: Mapping[str, KubeNode]) -> None:
        """One pod on each of these nodes. Raises `ClusterError` where none can be made."""
        node_names = list(names)
        if not node_names:
            return
        try:
            address, port = self._service()
        except (ClusterError, KeyError, IndexError) as error:
            why = f"Service default/kubernetes: {error}"
            self._started = [
                ServiceProbeResult(node=node, pod="", error=why) for node in node_names
            ]
            return
        name = f"kubernetes.default.svc.{self._settings.cluster.dns_domain}"
        for node in node_names:
            pod = pod_name("services", node)
            self._session.create(_manifest(pod, nodes[node], self._settings, name, address, port))
            self._started.append(
                ServiceProbeResult(node=node, pod=pod, name=name, address=_endpoint(address, port))
            )

    def wait(self, given_up: Mapping[str, str]) -> tuple[ServiceProbeResult, ...]:
        """What each pod says. Raises `ClusterError`.

        + given_up: nodes that no answer will come from, and why
        """
        until = time.monotonic() + min(_TIMEOUT_S, self._settings.verify.timeout_s)
        self._started = [
            replace(item, error=given_up.get(item.node, item.error)) for item in self._started
        ]
        while True:
            pods = {pod["metadata"]["name"]: pod for pod in self._session.pods()}
            last = time.monotonic() > until
            results = [self._result(item, pods.get(item.pod), last) for item in self._started]
            done = [item for item in results if item is not None]
            if len(done) == len(results):
                return tuple(done)
            time.sleep(_POLL_S)

    def _result(
        self, item: ServiceProbeResult, pod: kube_objects.Json | None, last: bool
    ) -> ServiceProbeResult | None:
        """The pod's result; None while it can still come."""
        if item.error:
            return item
        if pod is None:
            return replace(item, error="somebody deleted the pod")
        issue = kube_objects.pod_issue(pod)
        if pod.get("status", {}).get("phase") == "Succeeded":
            return parse_log(item, self._session.log(item.pod))
        if issue.failed or last:
            return replace(item, error=issue.error or "the pod gave no answer in time")
        return None

    def _service(self) -> tuple[str, int]:
        spec = self._cluster.json(SERVICE)["spec"]
        return str(spec["clusterIP"]), int(spec["ports"][0]["port"])


def parse_log(item: ServiceProbeResult, log: str) -> ServiceProbeResult:
    """What a pod's log says."""
    words = [line.removeprefix(_MARKER).split() for line in log.splitlines() if _MARKER in line]
    answers = {word[0]: " ".join(word[1:]) for word in words if word}
    if "lacks" in answers:
        return replace(
            item, error=f"its image has no {answers['lacks']}", missing_program=answers["lacks"]
        )
    if not answers.keys() & {"resolved", "unresolved"} or not answers.keys() & {
        "connected",
        "unconnected",
    }:
        return replace(item, error="its log ends before the answer")
    return replace(item, resolved="resolved" in answers, connected="connected" in answers)


def _endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _manifest(
    pod: str, node: KubeNode, settings: Settings, name: str, address: str, port: int
) -> dict[str, Any]:
    """vectorAdd's pod with another command, and without a GPU."""
    made = pod_manifest(pod, node, settings)
    made["spec"].pop("runtimeClassName", None)
    [container] = made["spec"]["containers"]
    container |= {
        "name": "services",
        # With the dot it is looked up as it is, and in no search domain of the site's.
        "command": ["sh", "-c", _SCRIPT, "sh", f"{name}.", address, str(port)],
        # its image asks for all GPUs
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
    }
    del container["resources"]
    return made
