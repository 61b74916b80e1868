"""etcd of the control planes, for who is about to restart a member of it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.facts.kubeadm import EtcdHealth
from deploys.lib import remote
from deploys.lib.commands import failure, report_failure
from deploys.lib.waiting import unfinished, wait_until
from gpuboot.kubernetes.readiness import Progress

_ETCD_S = 120


def wait_for_etcd(state: State, host: Host, control_planes: Sequence[str], steady_s: int) -> bool:
    """Wait until every member of etcd answers; a FunctionCommand's body. False: one does not.

    + control_planes: inventory names of their hosts
    + steady_s: how long all must have answered
    """
    members = [state.inventory.get_host(name) for name in control_planes]
    since: list[float] = []

    def probe() -> Progress:
        told = {item.name: remote.read_fact(item, EtcdHealth) for item in members}
        ill = [f"{name} ({said})" for name, said in told.items() if said]
        text = f"etcd is healthy on {len(told) - len(ill)} of {len(told)} control planes"
        if ill:
            since.clear()
            return Progress(False, f"{text}; not on {', '.join(ill)}")
        since.append(time.monotonic())
        return Progress(since[-1] - since[0] >= steady_s, text)

    end = wait_until(host, probe, _ETCD_S)
    if end.done:
        return True
    remedy = "see `crictl ps -a --name etcd` and its log, then run again"
    return report_failure(host, failure(unfinished(end, _ETCD_S), remedy))
