"""A rehearsal of what a run installs, by each host's package manager, before anything changes."""

from collections.abc import Mapping
from typing import Any

from gevent.pool import Pool
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.facts import get_fact
from pyinfra.api.host import Host

from deploys.engine import compare
from deploys.engine.current_host import current_host
from deploys.engine.framed import HiddenInput
from deploys.engine.planned_packages import PlannedPackages
from deploys.engine.spans import span
from deploys.parts.packages.rehearsal_fact import AptRehearsal
from deploys.phases.base import apt_conf
from deploys.run import context
from gpuboot.config.problems import Problem
from gpuboot.hosts import package_rehearsal, platforms, proxy
from gpuboot.hosts.package_rehearsal import Rehearsal

_MAX_AT_ONCE = 32
_NO_DNF = Rehearsal(error="dnf is not asked; `dnf install --assumeno` there shows it")


def rehearse(run: context.Run) -> tuple[list[Problem], list[str]]:
    """Problems and warnings about packages that a run's own would remove.

    Nothing is asked of hosts that have all packages already.
    """
    comparison = compare.current()
    by_host = comparison.planned() if comparison else {}
    planned = {node.host: by_host[node.host] for node in run.nodes if node.host in by_host}
    with span("rehearse"):
        answered = Pool(_MAX_AT_ONCE).map(lambda item: _rehearsal(run, *item), planned.items())
    run.rehearsals = dict(zip(planned, answered, strict=True))
    remove = {name: platforms.of(run.states[name]).remove_command for name in planned}
    allowed = run.settings.preflight.allow_removals
    return (
        package_rehearsal.problems(run.rehearsals, allowed, remove),
        package_rehearsal.warnings(run.rehearsals),
    )


def _rehearsal(run: context.Run, name: str, planned: PlannedPackages) -> Rehearsal:
    node = run.by_host[name]
    node_context = context.Context(run.settings, run.lock, run.nodes, node, run.states)
    if node_context.platform.package_manager != "apt":
        return _NO_DNF
    target = run.inventory.get_host(name)
    with current_host(target):
        return _rehearse(target, _arguments(run, planned, apt_conf(node_context)))


def _arguments(run: context.Run, planned: PlannedPackages, configuration: str) -> dict[str, Any]:
    credentials = proxy.apt_auth(run.settings.proxy)
    credential_arguments = (
        {"credentials": True, "_stdin": HiddenInput([credentials])} if credentials else {}
    )
    sources = [source.repository for source in planned.sources.values()]
    return {
        "packages": planned.packages,
        "sources": {item.path: item.text for item in sources},
        "keys": {item.key_path: item.key_url for item in sources},
        "edits": [edit for source in planned.sources.values() for edit in source.edits],
        "configuration": configuration,
        **credential_arguments,
    }


def _rehearse(target: Host, arguments: Mapping[str, Any]) -> Rehearsal:
    try:
        answer: Rehearsal = get_fact(
            target.state, target, AptRehearsal, kwargs=dict(arguments), apply_failed_hosts=False
        )
    except PyinfraError as error:
        return Rehearsal(error=f"the host did not answer: {error}")
    return answer
