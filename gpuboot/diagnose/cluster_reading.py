"""Reads the cluster for a diagnosis: objects, the last lines of what does not run, and targets.

Bounded in time: what has not answered when it is over is an error of its own, and the rest counts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.pods import Container, Pod, parse_pod
from gpuboot.diagnose import absence, paths, trim
from gpuboot.diagnose.absence import Members
from gpuboot.diagnose.site_recording import ClusterRecording
from gpuboot.telemetry.collectors import digest
from gpuboot.verify.collector import ALERTMANAGER, PROMETHEUS

T = TypeVar("T")
_AT_ONCE = 12
_MOST_LOGS = 60
_TAIL = "40"
_LONGEST = 600  # characters of a line
_ENDED_S = 900.0
# whose logs are read although they run: what they complain of stops others
_TALKATIVE = (
    *("coredns", "gpu-operator-", "dcgm-exporter", "node-exporter", "kube-flannel"),
    *("nvidia-device-plugin", "kube-apiserver", "etcd", "kube-controller-manager"),
    "kube-scheduler",
)
# lines of other people's programs are kept only where they tell of what is looked for
_TELLING = re.compile(
    r"NVML|CUDA|cuda|nvidia|dial tcp|x509|system not yet initialized|address already in use|"
    r"NCCL|/dev/shm|o space left"
)


def read(
    cluster: Cluster,
    namespace: str,
    within_s: float,
    progress: Callable[[str], None],
    members: Members | None = None,
) -> ClusterRecording:
    """Everything at this moment.

    + namespace: of the monitoring stack
    + within_s: seconds for all of it
    + members: what the cluster consists of; None: nobody looks whether it is there
    """
    until = time.monotonic() + within_s
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        return _read(cluster, namespace, pool, until, progress, members or Members())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _read(
    cluster: Cluster,
    namespace: str,
    pool: ThreadPoolExecutor,
    until: float,
    progress: Callable[[str], None],
    members: Members,
) -> ClusterRecording:
    try:
        now = pool.submit(cluster.now).result(timeout=max(until - time.monotonic(), 0.1))
        now_s = now.timestamp()
        pool.submit(_check_etcd, cluster).result(timeout=max(until - time.monotonic(), 0.1))
    except (ClusterError, TimeoutError) as error:
        return ClusterRecording(error=str(error) or "the API server did not answer in time")
    requests: dict[str, Callable[[], Any]] = {
        path: partial(_objects, cluster, path) for path in paths.RETAINED_FIELDS
    }
    base = cluster.service(namespace, *PROMETHEUS)
    requests["targets"] = partial(_targets, cluster, base)
    requests[paths.SILENCES] = partial(
        _silences, cluster, cluster.service(namespace, *ALERTMANAGER)
    )
    requests[paths.COLLECTORS] = partial(_collectors, cluster)
    answers, errors = _gather(pool, {**requests, **absence.questions(cluster, members)}, until)
    answers[paths.MISSING] = absence.missing(answers, members)
    pods = [parse_pod(item) for item in answers.get(paths.PODS, {}).get("items", ())]
    progress(f"{len(pods)} pods, {len(answers.get(paths.NODES, {}).get('items', ()))} nodes")
    texts, _ = _gather(pool, _logs(cluster, pods, now_s), until)
    targets = answers.pop("targets", None)
    return ClusterRecording(
        error="" if answers.keys() - {paths.MISSING} else next(iter(errors.values()), ""),
        now=now_s,
        found=answers,
        errors=errors,
        logs={key: lines for key, lines in texts.items() if lines},
        targets=targets,
    )


def _check_etcd(cluster: Cluster) -> None:
    """Find out at once that there is no etcd: every other request would wait for its time-out.

    Raises `ClusterError` where there is no etcd.
    """
    try:
        cluster.get("/readyz")
    except ClusterError as error:
        if "[-]etcd failed" in str(error):
            raise ClusterError("the API server answers that it does not reach etcd") from None


def _gather(
    pool: ThreadPoolExecutor, requests: Mapping[str, Callable[[], T]], until: float
) -> tuple[dict[str, T], dict[str, str]]:
    """The answers by their keys, and why others have none."""
    futures: dict[str, Future[T]] = {key: pool.submit(request) for key, request in requests.items()}
    wait(futures.values(), timeout=max(until - time.monotonic(), 0.1))
    answers: dict[str, T] = {}
    errors: dict[str, str] = {}
    for key, future in futures.items():
        if not future.done():
            future.cancel()
            errors[key] = "no answer in time"
            continue
        try:
            answers[key] = future.result()
        except (ClusterError, ValueError, LookupError, TypeError) as error:
            errors[key] = str(error)
    return answers, errors


def _objects(cluster: Cluster, path: str) -> dict[str, Any]:
    bare, _, query = path.partition("?")
    name, _, value = query.partition("=")
    try:
        answer = cluster.json(bare, {name: value.replace("%21%3D", "!=")} if query else None)
    except ClusterError as error:
        if error.status == 404 and path in paths.OPTIONAL:
            return {"items": [], "absent": True}
        raise
    return trim.select_list_fields(answer, paths.RETAINED_FIELDS[path])


def _targets(cluster: Cluster, base: str) -> tuple[dict[str, Any], ...]:
    data = cluster.json(f"{base}/api/v1/targets", {"state": "active"})["data"]
    return tuple(
        {
            "pool": item.get("scrapePool", ""),
            "labels": item["labels"],
            "health": item["health"],
            "error": item.get("lastError", ""),
            "url": item.get("scrapeUrl", ""),
        }
        for item in data["activeTargets"]
    )


def _silences(cluster: Cluster, base: str) -> dict[str, Any]:
    fields = ("id", "createdBy", "comment", "endsAt", "status", "matchers")
    try:
        silences = cluster.json(f"{base}/api/v2/silences")
        return {"items": [{key: item[key] for key in fields} for item in silences]}
    except ClusterError as error:
        if error.status == 404:  # there is no Alertmanager
            return {"items": []}
        raise


def _collectors(cluster: Cluster) -> dict[str, str]:
    """Digests of what may be an exporter's collectors, by `namespace/name/key`."""
    config_maps = cluster.json("/api/v1/configmaps")["items"]
    return {
        f"{item['metadata']['namespace']}/{item['metadata']['name']}/{key}": digest(text)
        for item in config_maps
        for key, text in (item.get("data") or {}).items()
        if key in ("metrics", "dcgm-metrics.csv")
    }


def _logs(
    cluster: Cluster, pods: Iterable[Pod], now: float
) -> dict[str, Callable[[], tuple[str, ...]]]:
    """What reads the logs that may tell something, by their keys."""
    requests: dict[str, Callable[[], tuple[str, ...]]] = {}
    for pod in sorted(pods, key=_rank):
        for container in pod.containers:
            key = f"{pod.key}/{container.name}"
            if not _is_log_needed(pod, container, now):
                continue
            if container.state in ("running", "terminated"):
                requests[key] = partial(_log, cluster, pod, container.name, False)
            if (
                container.termination
                and container.restarts
                and now - container.termination.at < _ENDED_S
            ):
                requests[f"{key}/previous"] = partial(_log, cluster, pod, container.name, True)
        if len(requests) >= _MOST_LOGS:
            break
    return requests


def _rank(pod: Pod) -> tuple[bool, bool, str]:
    """The key to sort pods by: first those that do not run, then those that others need."""
    return pod.ready or pod.phase == "Succeeded", not pod.name.startswith(_TALKATIVE), pod.key


def _is_log_needed(pod: Pod, container: Container, now: float) -> bool:
    if pod.phase == "Succeeded":
        return False
    ended_recently = container.termination is not None and now - container.termination.at < _ENDED_S
    return (
        not container.ready
        or ended_recently
        or bool(pod.devices)
        or any(name in pod.name for name in _TALKATIVE)
    )


def _log(cluster: Cluster, pod: Pod, container: str, previous: bool) -> tuple[str, ...]:
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/log"
    query = {"container": container, "tailLines": _TAIL, "timestamps": "true"}
    text = cluster.get(path, {**query, "previous": "true"} if previous else query)
    lines = text.decode(errors="replace").splitlines()
    if not pod.owner.startswith(("DaemonSet", "ReplicaSet", "StatefulSet", "Node")) or pod.devices:
        lines = [line for line in lines if _TELLING.search(line)]
    return tuple(line[:_LONGEST] for line in lines)
