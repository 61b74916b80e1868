"""The plan of the run that pyinfra has prepared, from what operations recorded."""

from pathlib import Path

from pyinfra.api.state import State

from deploys.engine import changes, compare
from deploys.run import context
from gpuboot.config.outdated import lock_ends
from gpuboot.config.settings import Settings
from gpuboot.config.support import End
from gpuboot.config.versions import unused
from gpuboot.hosts import repository_keys
from gpuboot.hosts.package_changes import rehearsed_changes
from gpuboot.plan import Decision, Plan, Step
from gpuboot.plan.history import durations


def build(state: State, settings: Settings) -> Plan:
    """All that the prepared operations would change.

    + state: pyinfra's, at the end of its stage Prepare and with its search for changes
    """
    steps: list[Step] = []
    decisions: list[Step] = []
    unchanged, run = compare.left_out(), context.current_run()
    hosts = [host for host in state.inventory if host in state.activated_hosts]
    for op_hash in state.get_op_order():  # type: ignore[no-untyped-call]
        changing, conditional, decided = {}, set(), {}
        for host in hosts:
            data = state.ops[host].get(op_hash)
            planned = changes.planned.get((host.name, op_hash), ())
            if host_decisions := [item for item in planned if isinstance(item, Decision)]:
                decided[host.name] = host_decisions
            is_repeated = not planned and (host.name, op_hash) in changes.repeated
            if data is not None and data.operation_meta._maybe_is_change and not is_repeated:
                changing[host.name] = tuple(item for item in planned if item not in host_decisions)
                if data.global_arguments["_if"]:
                    conditional.add(host.name)
        phase, name = title(state, op_hash)
        if changing:
            step = Step(phase=phase, name=name, hosts=changing, conditional=frozenset(conditional))
            steps.append(step)
        else:
            unchanged += 1
        if decided:
            decisions.append(Step(phase=phase, name=name, hosts=decided))
    return Plan(
        cluster=settings.cluster.name,
        hosts=[host.name for host in hosts],
        steps=steps,
        decisions=decisions,
        unchanged=unchanged,
        packages={name: rehearsed_changes(of_host) for name, of_host in run.rehearsals.items()},
        durations=durations(Path(settings.verify.reports), settings.cluster.name, steps),
        ends=_ends(run),
    )


def _ends(run: context.Run) -> list[End]:
    """When support of what the run installs ends, and the hosts' keys of package repositories."""
    keys = (key for state in run.states.values() for key in state.repository_keys)
    of_versions = lock_ends(run.lock, unused(run.settings, run.docker_hosts))
    return [*of_versions, *repository_keys.ends(keys)]


def title(state: State, op_hash: str) -> tuple[str, str]:
    """Phase and name of an operation; both are its whole name where it is in no phase."""
    names = state.op_meta[op_hash].names
    name = min(names) if names else op_hash
    phase, _, operation_name = name.partition(" | ")
    return phase, operation_name or name
