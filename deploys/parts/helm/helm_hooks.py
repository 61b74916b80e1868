"""Helm commands, whose hooks are Jobs: one that can never end is told at once, and ends Helm."""

import shlex
import time
from dataclasses import replace

import gevent
from pyinfra import logger
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import answers, privilege, remote
from deploys.engine.commands import failure, report_failure
from deploys.parts.cluster.fact import Cluster, PodIssues
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from gpuboot.cluster import hooks
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.news import News
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.stuck import Patience, Stuck
from gpuboot.hosts.fact_output import answer, framed

_PID = "/run/gpuboot/helm.pid"
_LOOK_S = 3.0
_CLOCKS_S = 5.0  # that control planes may differ by
_TAIL_LINES = 10  # last lines of what Helm says


def watched(command: StringCommand, description: str, namespace: str) -> FunctionCommand:
    """A Helm command that ends early when one of its hooks cannot end. Runs on the leader.

    + command: shown, so it must hold no secret
    + description: it does, for the person who waits
    """
    return FunctionCommand(_watched, (command.get_raw_value(), description, namespace), {})


def _watched(state: State, host: Host, command: str, description: str, namespace: str) -> bool:
    script = (
        f"mkdir -p {_PID.rpartition('/')[0]}; {command} & pid=$!; echo $pid >{_PID}; "
        f"wait $pid; code=$?; rm -f {_PID}; exit $code"
    )
    given_up: list[Stuck] = []
    watcher = gevent.spawn(_watch, host, description, namespace, given_up)
    try:
        ok, output = host.run_shell_command(
            StringCommand(f"sh -c {shlex.quote(script)}"),
            print_output=state.print_output,
            print_input=state.print_input,
            **privilege.become_arguments(host),
        )
    finally:
        watcher.kill()
    if ok:
        return True
    if given_up:
        reasons = "; ".join(dict.fromkeys(map(str, given_up)))
        remedies = "; ".join(dict.fromkeys(item.remedy for item in given_up))
        return report_failure(
            host, failure(f"{description}: {reasons}", f"{remedies}; then run again")
        )
    tail = "\n".join(output.output_lines[-_TAIL_LINES:])
    return report_failure(
        host, failure(f"{description}: Helm failed: {tail}", "mend that, and run again")
    )


def _watch(host: Host, description: str, namespace: str, given_up: list[Stuck]) -> None:
    """Look again and again; end Helm when it waits in vain. + given_up: gets the reasons"""
    patience, news, started = Patience(), News(logger.info), time.monotonic()
    since: float | None = None  # by the leader's clock
    with answers.live():
        while not given_up:
            gevent.sleep(_LOOK_S)
            try:
                if since is None:
                    passed = time.monotonic() - started
                    since = float(remote.run(host, "date +%s")) - passed - _CLOCKS_S
                look = _look(host, namespace, since)
                now = time.monotonic()
                given_up.extend(patience.over(look.stuck, 0, now))
                if look.stuck:
                    news(
                        f"{host.print_prefix}{description}: {look.text}",
                        f" ({now - started:.0f} s)",
                    )
                if given_up:
                    remote.run(host, f"kill -TERM $(cat {_PID})")
            except (PyinfraError, OSError, EOFError, ValueError):
                continue  # the next look may be answered; Helm has its own time-out


def _look(host: Host, namespace: str, since: float) -> Progress:
    query = f"{KUBECTL} --request-timeout=10s -n {shlex.quote(namespace)} get jobs -o"
    job_listing = remote.run(host, framed(f"{query} {shlex.quote(hooks.FORMAT)}"))
    jobs = hooks.parse(answer(job_listing.splitlines()).lines, since)
    if not jobs:
        return hooks.progress(jobs, namespace, ClusterState())
    state = remote.read_fact(host, Cluster, kubeconfig=ADMIN_CONF)
    issues = remote.read_fact(host, PodIssues, kubeconfig=ADMIN_CONF)
    return hooks.progress(jobs, namespace, replace(state, pod_issues=issues))
