"""The probe of Services: a pod on each GPU node resolves a name and connects."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.config.settings import Settings
from gpuboot.verify import outside_name
from gpuboot.verify.evidence import ServiceProbeResult
from gpuboot.verify.session import Session, pod_name
from gpuboot.verify.workload_pods import GpuContainer, Script, pod_manifest

# The API server's own Service, which every cluster has.
SERVICE = "/api/v1/namespaces/default/services/kubernetes"
TOOLS = ("getent", "bash", "timeout")
_MARKER = "gpuboot-services:"
# A pod's first packets may come before its network is whole, so three tries. bash connects itself:
# NVIDIA's image (Ubuntu's base: bash, libc-bin, coreutils) has no curl.
# What the first name server says of it: the beginning of its answer, as numbers. One write is one
# datagram, and bash may write a line at a time, so dd collects them.
_DNS_QUERY = (
    'while read -r key server rest; do [ "$key" = nameserver ] && break; done </etc/resolv.conf; '
    'exec 3<>"/dev/udp/$server/53" && printf "$0" | dd bs=512 iflag=fullblock status=none >&3 && '
    "timeout 5 head -c 12 <&3 | od -An -tu1"
)
_SCRIPT = f"""\
name=$1 address=$2 port=$3 outside=$4 query=$5
tell() {{ echo "{_MARKER} $*"; }}
try() {{ for _ in 1 2 3; do timeout 10 "$@" >/dev/null 2>&1 && return 0; sleep 1; done; return 1; }}
for tool in {" ".join(TOOLS)}; do
  command -v "$tool" >/dev/null || {{ tell lacks "$tool"; exit 0; }}
done
if try getent ahosts "$name"; then tell resolved; else tell unresolved; fi
if try bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$address" "$port"
then tell connected; else tell unconnected; fi
[ -n "$outside" ] || exit 0
for _ in 1 2; do
  timeout 10 getent ahosts "$outside." >/dev/null 2>&1 && {{ tell outside resolved; exit 0; }}
done
set -- $(bash -c '{_DNS_QUERY}' "$query" 2>/dev/null)
if [ $# -ge 4 ]; then tell outside rcode $(($4 % 16)); else tell outside unresolved; fi
"""
_TIMEOUT_S = 120  # twice three tries of ten seconds, what a broken outside takes, the pod's start
_LOOK_EVERY_S = 1.0
_CONTAINER = "services"


class ServiceProbe:
    """A pod on each GPU node, which tries DNS and a Service.

    + session: where they are made

    It runs beside vectorAdd, where that has a pod; else, or where that pod fails, in its own.
    """

    def __init__(self, cluster: Cluster, session: Session, settings: Settings) -> None:
        self._cluster = cluster
        self._session = session
        self._settings = settings
        self._name = f"kubernetes.default.svc.{settings.cluster.dns_domain}"
        self._outside = outside_name.of_site(settings)
        self._address: tuple[str, int] | None = None
        self._error = ""
        self._nodes: Mapping[str, Node] = {}
        self._carried: dict[str, str] = {}  # pod -> its container that runs the script
        self._started: list[ServiceProbeResult] = []

    def read_address(self) -> None:
        """Read where the API server's Service is."""
        try:
            spec = self._cluster.json(SERVICE)["spec"]
            self._address = str(spec["clusterIP"]), int(spec["ports"][0]["port"])
        except (ClusterError, KeyError, IndexError) as error:
            self._error = f"Service default/kubernetes: {error}"

    def script(self) -> Script:
        """The script that a pod runs; an empty one without an address."""
        if self._address is None:
            return Script()
        # With the dot it is looked up as it is, and in no search domain of the site's.
        address, port = self._address
        outside = (self._outside, outside_name.query(self._outside) if self._outside else "")
        return Script(_SCRIPT, (f"{self._name}.", address, str(port), *outside))

    def start(self, nodes: Mapping[str, Node], carriers: Mapping[str, GpuContainer]) -> None:
        """Start a pod on each of these nodes. Raises `ClusterError` where none can be made.

        + carriers: node -> the container there that runs the script already
        """
        self._nodes = nodes
        if self._address is None:
            self._started = [
                ServiceProbeResult(node=node, pod="", error=self._error) for node in nodes
            ]
            return
        self._carried = {item.pod: item.name for item in carriers.values()}
        endpoint = _endpoint(*self._address)
        self._started = [
            ServiceProbeResult(
                node=node,
                pod=carriers[node].pod if node in carriers else pod_name(_CONTAINER, node),
                name=self._name,
                address=endpoint,
                outside=self._outside,
                outside_required=self._settings.verify.outside_name is not None,
            )
            for node in nodes
        ]
        self._start_own(item for item in self._started if item.node not in carriers)

    def _start_own(self, items: Iterable[ServiceProbeResult]) -> None:
        self._session.create([self._manifest(item.pod, self._nodes[item.node]) for item in items])

    def wait(self, given_up: Mapping[str, str]) -> tuple[ServiceProbeResult, ...]:
        """What each pod says. Raises `ClusterError`.

        + given_up: nodes that no answer will come from, and why
        """
        until = time.monotonic() + min(_TIMEOUT_S, self._settings.verify.timeout_s)
        self._started = [
            replace(item, error=given_up.get(item.node, item.error)) for item in self._started
        ]
        while True:
            self._replace_failed(self._session.pods())
            pods = self._session.pods()
            last = time.monotonic() > until
            results = [self._result(item, pods.get(item.pod), last) for item in self._started]
            finished = [item for item in results if item is not None]
            if len(finished) == len(results):
                return tuple(finished)
            self._session.wait(_LOOK_EVERY_S)

    def _replace_failed(self, pods: Mapping[str, Pod]) -> None:
        """Start a pod for each node where vectorAdd's, which carried the probe, has not run."""
        failed = [
            item
            for item in self._started
            if item.pod in self._carried and not item.error and not self._answer(item)
            and (item.pod not in pods or not pods[item.pod].node
                 or self._session.issue(pods[item.pod]).failed)
        ]  # fmt: skip
        replacements = [replace(item, pod=pod_name(_CONTAINER, item.node)) for item in failed]
        self._started = [item for item in self._started if item not in failed] + replacements
        self._start_own(replacements)

    def _answer(self, item: ServiceProbeResult) -> ServiceProbeResult | None:
        """What a pod's log says; None before it has said all."""
        result = parse_log(item, self._session.log(item.pod, self._container(item.pod)))
        return None if result.error and not result.missing_program else result

    def _container(self, pod: str) -> str:
        return self._carried.get(pod, _CONTAINER)

    def _result(
        self, item: ServiceProbeResult, pod: Pod | None, last: bool
    ) -> ServiceProbeResult | None:
        """The pod's result; None while it can still come."""
        if item.error:
            return item
        if result := self._answer(item):
            return result
        if pod is None:
            return replace(item, error=self._session.loss())
        issue = self._session.issue(pod)
        if pod.phase == "Succeeded":
            return parse_log(item, self._session.whole_log(item.pod, _CONTAINER))
        if issue.failed or last:
            return replace(item, error=issue.error or "the pod gave no answer in time")
        return None

    def _manifest(self, pod: str, node: Node) -> dict[str, Any]:
        """A pod that asks for no GPU."""
        script = self.script()
        container = {
            "name": _CONTAINER,
            "command": ["sh", "-c", script.text, "sh", *script.arguments],
            # its image asks for all GPUs
            "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
        }
        return pod_manifest(pod, node, self._settings, [container])


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
    if item.outside and "outside" not in answers:
        return replace(item, error="its log ends before the answer")
    return replace(
        item,
        resolved="resolved" in answers,
        connected="connected" in answers,
        outside_answer=answers.get("outside", ""),
    )


def _endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
