"""Preflight: reads all machines, names everything that is wrong, and changes nothing."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from gevent.lock import RLock
from pyinfra import logger
from pyinfra.api.exceptions import DeployError
from pyinfra.api.host import Host
from pyinfra.context import state

from deploys.engine import answers, compare
from deploys.engine.connections import unreachable, unreachable_problem
from deploys.engine.framed import Framed
from deploys.engine.start_problems import note, refusal
from deploys.parts.api_endpoint.neighbour_fact import AddressOwner
from deploys.parts.node.connectivity_fact import UnreachableEndpoints
from deploys.parts.packages import apt_fact as apt
from deploys.parts.packages import dnf_fact as dnf
from deploys.phases import drains, rehearsal
from deploys.run import context, lock
from deploys.run import deploy_kinds as kinds
from deploys.run import live_cluster as existing_cluster
from gpuboot.cluster import virtual_address
from gpuboot.cluster.endpoint import problems as api_checks
from gpuboot.config import inventory, versions
from gpuboot.config.problems import Problem, render
from gpuboot.hosts import gpu_choice, kernels, mig, platforms, time_services
from gpuboot.hosts.platforms import PackageManager
from gpuboot.hosts.reading import Reading
from gpuboot.hosts.transient import PAUSES_S
from gpuboot.monitoring import network_policies
from gpuboot.preflight import (
    boot_problems,
    connectivity,
    environment_problems,
    firewall,
    kubelet_problems,
    network_problems,
    remains_problems,
    repository_key_problems,
    software_problems,
)
from gpuboot.preflight import driver_problems as driver_checks
from gpuboot.preflight import package_problems as package_checks
from gpuboot.preflight import platform as platform_checks
from gpuboot.preflight.docker_problems import checks as docker_checks
from gpuboot.preflight.package_problems import AvailableVersion, RequiredPackage
from gpuboot.preflight.preflight_checks import Check, evaluate
from gpuboot.site import local_files

T = TypeVar("T")
_AVAILABLE: Mapping[PackageManager, type[Framed[list[AvailableVersion]]]] = {
    "apt": apt.AvailableVersions,
    "dnf": dnf.AvailableVersions,
}
_WARNINGS = (software_problems.warnings, time_services.warnings, repository_key_problems.warnings)
_once = RLock()
_WRONG_DEPLOY = {
    False: Problem(
        "", "this inventory is one of Docker hosts (gpu_hosts, monitor)",
        "run deploys/standalone.py, or name control_plane and workers",
    ),
    True: Problem(
        "", "this inventory is one of a cluster (control_plane, workers)",
        "run deploys/site.py, or name gpu_hosts and monitor",
    ),
}  # fmt: skip


def preflight(deploy: str, docker_hosts: bool = False, check_only: bool = False) -> None:
    """Check all hosts, once per run, while pyinfra prepares; so `--dry` shows it as well.

    At the same time the operations of the deploy are compared with the hosts.

    + deploy: the deploy's own file. It is called twice, so it may do no more than call operations
      of gpuboot
    + docker_hosts: the deploy makes Docker hosts, not a cluster
    + check_only: nothing follows; the deploy is only compared

    A run goes on without a worker that cannot be reached; preflight alone has a problem with it.
    Raises `DeployError` with every problem of every host.
    """
    if compare.collecting():
        return
    with _once:
        run = context.read()
        if run.verdict is None and run.docker_hosts != docker_hosts:
            run.verdict = refusal([_WRONG_DEPLOY[docker_hosts]])
        elif (
            run.verdict is None and kinds.may_change() and (locks := lock.foreign_locks(run.states))
        ):
            run.verdict = refusal(locks)
        elif run.verdict is None:
            checks = docker_checks(run.settings) if docker_hosts else None
            verdicts: list[tuple[list[Problem], list[str]]] = []
            compare.compare(lambda: verdicts.append(_evaluate(run, checks)), deploy)
            _conclude(run, *verdicts[0], check_only)
        if run.verdict:
            raise DeployError(run.verdict)


def _conclude(
    run: context.Run, problems: list[Problem], warnings: list[str], check_only: bool
) -> None:
    """Judge what hosts answered, what their package managers rehearsed, and drains to come."""
    for rehearse in (rehearsal.rehearse, drains.rehearse):
        unwelcome, unsure = rehearse(run)
        problems, warnings = [*problems, *unwelcome], [*warnings, *unsure]
    missing = [unreachable_problem(name) for name in run.missing]
    if check_only:
        problems += missing
    else:
        warnings = [*map(_without, missing), *warnings]
    note(
        Reading(
            unreachable=dict(unreachable),
            problems=tuple(sorted(set(problems))),
            warnings=tuple(warnings),
        )
    )
    run.verdict = render(problems) if problems else ""
    if line := repository_key_problems.summary(run.states):
        logger.info(line)
    for line in (*warnings, *_no_plan()):
        logger.warning(line)


def _evaluate(run: context.Run, checks: Sequence[Check] | None) -> tuple[list[Problem], list[str]]:
    """Every problem of the hosts, the cluster and the local files, and lines of warning.

    + checks: of each host; None: those of a cluster's
    """
    answers.foresee(_questions(run))
    unfit, unsure = existing_cluster.evaluate(run)
    missing, old = _versions(run)
    problems = [
        *run.unread,
        *local_files.problems(run.settings),
        *unfit,
        *missing,
        *evaluate(run.nodes, run.states, run.settings, run.lock, checks),
    ]
    if not run.docker_hosts:
        problems += api_checks(run.nodes, run.states, run.settings)
        problems += _virtual_address(run)
    problems += _unreachable(run, pauses=() if problems else PAUSES_S)
    return problems, [*_warnings(run), *unsure, *old]


def _warnings(run: context.Run) -> list[str]:
    """Lines about what a run goes on with."""
    of_cluster: list[str] = []
    if not run.docker_hosts:
        of_cluster += firewall.warnings(run.nodes, run.states, run.settings)
        of_cluster += boot_problems.warnings(run.nodes, run.states)
        of_cluster += kubelet_problems.warnings(run.nodes, run.states, run.settings)
        of_cluster += network_problems.warnings(run.settings, run.lock.kubernetes.minor)
    return [
        *local_files.warnings(run.settings),
        *network_policies.warnings(run.settings),
        *platform_checks.warnings(run.nodes, run.states),
        *gpu_choice.warnings(run.nodes, run.states),
        *[line for check in _WARNINGS for line in check(run.nodes, run.states)],
        *environment_problems.warnings(run.nodes, run.states, run.settings),
        *remains_problems.warnings(run.nodes, run.states),
        *kernels.warnings(run.nodes, run.states, run.settings),
        *driver_checks.warnings(run.nodes, run.states),
        *driver_checks.vendor_warnings(run.nodes, run.states, run.settings, run.lock),
        *mig.warnings(run.nodes, run.states, run.settings),
        *inventory.warnings(run.nodes),
        *versions.warnings(run.lock, run.settings, run.docker_hosts),
        *of_cluster,
    ]


def _without(problem: Problem) -> str:
    return (
        f"[{problem.host}] {problem.cause}; the run goes on without it, and does not end well "
        f"(exit code 1); remedy: {problem.remedy}"
    )


def _no_plan() -> list[str]:
    """A warning that --dry with -y prints no plan: pyinfra then looks for no changes."""
    if "--dry" not in sys.argv or state.check_for_changes:
        return []
    return [
        "--dry with -y shows no plan: pyinfra looks for changes only without -y; remedy: drop -y"
    ]


def _unreachable(run: context.Run, pauses: Iterable[int]) -> list[Problem]:
    """A problem for each mirror or publisher that a host needs and cannot reach.

    + pauses: seconds before each other try, for what does not answer
    """
    readable = [node for node in run.nodes if node.host in run.states]
    unanswered = _without_answer(run, _endpoints(run))
    for pause in pauses:
        if not unanswered:
            break
        names = ", ".join(dict.fromkeys(name for items in unanswered.values() for name in items))
        logger.info(
            f"waiting for {names}: no answer to {len(unanswered)} hosts (again in {pause} s)"
        )
        time.sleep(pause)
        with answers.live():
            unanswered = _without_answer(run, unanswered)
    return connectivity.problems(run.settings, readable, unanswered)


def _virtual_address(run: context.Run) -> list[Problem]:
    """Why `cluster.virtual_ip` cannot be had; whether it is free is asked before it is ours."""
    cluster = run.settings.cluster
    problems = virtual_address.problems(run.nodes, run.states, cluster)
    asker = virtual_address.asker(run.nodes, run.states, cluster)
    if problems or asker is None:
        return problems
    arguments = {run.inventory.get_host(asker.host): {"address": cluster.virtual_ip}}
    [owner] = answers.read_each(AddressOwner, arguments)
    return virtual_address.taken_address_problems(cluster, asker.host, owner)


def _without_answer(run: context.Run, endpoints: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Inventory name -> the `host:port` that do not answer."""
    answers = _read_each(run, UnreachableEndpoints, "addresses", endpoints)
    return {host: answer for host, answer in answers.items() if answer}


def _versions(run: context.Run) -> tuple[list[Problem], list[str]]:
    """Problems and warnings about versions that the repositories lack, as far as hosts know."""
    required = _required(run)
    available: dict[str, list[AvailableVersion]] = {}
    for manager, fact in _AVAILABLE.items():
        available |= _read_each(run, fact, "packages", _package_names(run, required, manager))
    return package_checks.missing_versions(required, available)


def _required(run: context.Run) -> dict[str, list[RequiredPackage]]:
    return {
        node.host: package_checks.required(node, run.states[node.host], run.settings, run.lock)
        for node in run.nodes
        if node.host in run.states
    }


def _package_names(
    run: context.Run, required: Mapping[str, Sequence[RequiredPackage]], manager: PackageManager
) -> dict[str, list[str]]:
    return {
        host: [item.package for item in items]
        for host, items in required.items()
        if items and platforms.of(run.states[host]).package_manager == manager
    }


def _endpoints(run: context.Run) -> dict[str, list[str]]:
    """Inventory name -> `host:port` that it downloads from."""
    return {
        node.host: list(connectivity.endpoints(run.settings, node))
        for node in run.nodes
        if node.host in run.states
    }


def _questions(run: context.Run) -> Iterator[tuple[Host, type[Framed[Any]], dict[str, Any]]]:
    """What preflight is going to read of each host."""
    for host, addresses in _endpoints(run).items():
        yield run.inventory.get_host(host), UnreachableEndpoints, {"addresses": addresses}
    required = _required(run)
    for manager, fact in _AVAILABLE.items():
        for host, names in _package_names(run, required, manager).items():
            yield run.inventory.get_host(host), fact, {"packages": names}
    cluster = run.settings.cluster
    if asker := virtual_address.asker(run.nodes, run.states, cluster):
        yield run.inventory.get_host(asker.host), AddressOwner, {"address": cluster.virtual_ip}


def _read_each(
    run: context.Run,
    fact: type[Framed[list[T]]],
    argument: str,
    arguments: Mapping[str, list[str]],
) -> dict[str, list[T]]:
    """A fact of several hosts at once. + arguments: inventory name -> the argument's value"""
    host_arguments = {
        run.inventory.get_host(host): {argument: arguments[host]} for host in arguments
    }
    return dict(zip(arguments, answers.read_each(fact, host_arguments), strict=True))
