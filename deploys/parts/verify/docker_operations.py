"""The operation that verifies Docker hosts. What it starts it removes: it yields no command."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from gevent.pool import Pool
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host as InventoryHost
from pyinfra.context import host, inventory

from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.engine.remote import RemoteError, read_fact, run
from deploys.parts.docker.fact import Docker
from deploys.parts.verify.operations import outcome, publish
from deploys.parts.verify.verify_hosts import Discovery, read_hosts, say
from gpuboot.config.compose_images import mirrored
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.docker import docker_runner
from gpuboot.docker.compose.compose_files import FOLDER
from gpuboot.docker.compose.compose_services import local_url
from gpuboot.docker.docker_runner import (
    MetricsCollector,
    NoAnswer,
    processes_by_gpu,
    workload_result,
)
from gpuboot.hosts.nvidia_smi import ACCEPT_WARNING
from gpuboot.hosts.registries import DOCKER_ENVIRONMENT
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import WorkloadResult
from gpuboot.verify.levels import ALL, Scope
from gpuboot.verify.report import Report

_MAX_AT_ONCE = 32
_ASK_S = 15
_SCRIPT = "nvidia-smi -L; /cuda-samples/vectorAdd"
_GRACE_S = 15
_APPS = (
    "timeout -k 5 60 nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader"
    + ACCEPT_WARNING
)
_LABEL = "io.gpuboot=verify"
_PID_LABEL = "io.gpuboot.shell"  # label: process that started the container


@operation(compared=False)
def chain(settings: Settings, lock: Lock, nodes: Sequence[Node], scope: Scope = ALL) -> Commands:
    """Verify every GPU of the Docker hosts, and write the reports.

    + nodes: all of the inventory
    + scope: hosts that it is limited to

    Fails the host when something failed; what could not be tried is the run's exit code 2.
    """
    yield from outcome(lambda: verify(settings, lock, nodes, scope))


def verify(settings: Settings, lock: Lock, nodes: Sequence[Node], scope: Scope = ALL) -> Report:
    """Collect, evaluate, and write the reports. The current host is the monitoring host."""
    started, monotonic_start = datetime.now(UTC), time.monotonic()
    by_name = {node.name: node for node in nodes}
    hosts = [
        _with_docker(item, by_name[item.node])
        for item in read_hosts(settings, lock, Discovery(nodes), scope)
    ]
    read_s = time.monotonic() - monotonic_start
    monitor = inventory.get_host(host.name)
    collector = MetricsCollector(
        scope.selected(nodes),
        settings,
        lambda url: _query(monitor, url),
        lambda: _dashboards(monitor, settings),
    )
    computed = hosts if settings.verify.level != "quick" else []
    result = docker_runner.verify(
        hosts, settings, collector, lambda: _run_workloads(computed, by_name, settings), say
    )
    versions = {"docker (lock)": lock.docker.version}
    result = replace(result, versions=result.versions | versions)
    return publish(
        settings, nodes, started, time.monotonic() - monotonic_start, read_s, result, scope
    )


def _with_docker(evidence: Host, node: Node) -> Host:
    """The host with dockerd's runtimes in the place of containerd's."""
    if evidence.error:
        return evidence
    try:
        state = read_fact(inventory.get_host(node.host), Docker, toolkit=False)
    except PyinfraError as error:
        return replace(evidence, error=f"dockerd could not be asked: {error}")
    return replace(evidence, runtime_handlers=state.runtimes, default_runtime=state.default_runtime)


def _query(monitor: InventoryHost, url: str) -> str:
    command = f"curl -fsSg --noproxy '*' --max-time {_ASK_S} {shlex.quote(url)}"
    return _answer(monitor, command)


def _dashboards(monitor: InventoryHost, settings: Settings) -> str:
    """Grafana's dashboards. The password never leaves the host, and is on no command line."""
    file = shlex.quote(f"{FOLDER}/secrets/grafana/admin-password")
    url = f"{local_url(settings, 'grafana')}/api/search?type=dash-db&limit=1000"
    return _answer(
        monitor,
        f"{{ printf 'user = \"admin:'; cat {file}; printf '\"\\n'; }} | "
        f"curl -fsSg --noproxy '*' --max-time {_ASK_S} -K - {shlex.quote(url)}",
    )


def _answer(monitor: InventoryHost, command: str) -> str:
    try:
        return run(monitor, command)
    except PyinfraError as error:
        last = str(error).strip().splitlines()[-1]
        raise NoAnswer(last) from None


def _run_workloads(
    hosts: Sequence[Host], nodes: dict[str, Node], settings: Settings
) -> list[WorkloadResult]:
    """vectorAdd on all that no process uses: hosts in parallel, GPUs of a host one by one."""
    able = [item for item in hosts if not item.error and item.devices]
    if not able:
        return []
    count = sum(len(item.devices) for item in able)
    say(f"vectorAdd in a container on each of {count} GPUs and MIG devices")
    pool = Pool(min(len(able), _MAX_AT_ONCE) or 1)
    results_by_host = pool.map(lambda item: _run_on_host(item, nodes[item.node], settings), able)
    return [item for of_host in results_by_host for item in of_host]


def _run_on_host(evidence: Host, node: Node, settings: Settings) -> list[WorkloadResult]:
    target = inventory.get_host(node.host)
    try:
        processes = processes_by_gpu(run(target, _APPS))
    except PyinfraError:
        processes = {}  # an old driver cannot tell; the exporter's own process is none of these
    results = []
    for device in evidence.devices:
        # nvidia-smi names a process's GPU, not its MIG device
        if count := processes.get(device.gpu.uuid):
            subject = "its GPU" if device.instance else "it"
            error = f"{count} processes use {subject}"
            results.append(
                WorkloadResult(
                    pod=device.uuid,
                    namespace="docker",
                    node=node.name,
                    error=error,
                    unschedulable=True,
                )
            )
            continue
        run_started = time.monotonic()
        try:
            status, _, output = run(target, _command(device.uuid, settings)).partition("\n")
        except (PyinfraError, RemoteError) as error:
            status, output = "255", str(error)
        duration = time.monotonic() - run_started
        results.append(workload_result(node.name, device.uuid, output, int(status), duration))
    return results


def _command(uuid: str, settings: Settings) -> str:
    """Runs vectorAdd on one GPU and prints its exit status, then all it said.

    Docker hands SIGTERM on to the container, whose first process, a shell, ignores it: so a
    container whose time is up is removed, and Docker's client does not wait for it.
    """
    image = shlex.quote(mirrored(settings.verify.image, settings.mirrors))
    return (
        f"{DOCKER_ENVIRONMENT}; "
        f"out=$(timeout -k {_GRACE_S} {settings.verify.timeout_s} docker run --rm --network none "
        f"--cap-drop ALL --security-opt no-new-privileges --label {_LABEL} --label {_PID_LABEL}=$$ "
        f"--gpus device={uuid} --entrypoint sh {image} -c {shlex.quote(_SCRIPT)} 2>&1); "
        "status=$?; case $status in 124|137) "
        f"timeout -k 5 60 docker ps -q --filter label={_PID_LABEL}=$$ | "
        "xargs -r timeout -k 5 60 docker rm -f >&2 "
        ';; esac; printf "%s\\n%s\\n" "$status" "$out"'
    )
