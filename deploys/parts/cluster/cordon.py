"""A node that something is done to takes no new pods, and is waited for after a reboot."""

from pyinfra.api.host import Host

from deploys.engine.commands import failure
from deploys.engine.remote import RemoteError, run
from deploys.engine.waiting import unfinished, wait_until
from deploys.parts.cluster.api_silence import explained, lacks
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.stuck import after_reboot

CORDON_MARK = "/etc/gpuboot/cordoned"
_READY_S = 300
_BOOT = "{.status.nodeInfo.bootID}"
_READY = '{.status.conditions[?(@.type=="Ready")].status}'
_READY_MESSAGE = '{.status.conditions[?(@.type=="Ready")].message}'


def cordon(leader: Host, node: str, host: Host) -> bool:
    """Cordon a node, unless there is no cluster or a person did; whether `uncordon` is to follow.

    Its pods stay. A mark on the host tells later runs that it was gpuboot.

    + leader: where kubectl runs
    + node: its name in Kubernetes
    + host: the node's host

    Raises `RemoteError` when the cluster does not answer.
    """
    answer = run(
        leader,
        f"test ! -e {ADMIN_CONF} || {KUBECTL} get node {node} --ignore-not-found "
        "-o 'jsonpath={.metadata.name} {.spec.unschedulable}'",
    ).split()
    if not answer or ("true" in answer and not by_gpuboot(host)):
        return False
    run(host, f"mkdir -p $(dirname {CORDON_MARK}) && touch {CORDON_MARK}")
    run(leader, f"{KUBECTL} cordon {node}")
    return True


def by_gpuboot(host: Host) -> bool:
    """Whether it was gpuboot that cordoned the node of this host, in this run or an earlier one."""
    return bool(run(host, f"test ! -e {CORDON_MARK} || echo yes"))


def uncordon(leader: Host, node: str, host: Host) -> None:
    """End what `cordon` began. Raises `RemoteError` when the cluster does not answer."""
    run(leader, f"{KUBECTL} uncordon {node}")
    run(host, f"rm -f {CORDON_MARK}")


def wait_until_rejoined(leader: Host, node: str, boot_id: str) -> None:
    """Wait until the cluster sees a node Ready in its new boot.

    Ready alone would not do: for 40 seconds the API server shows what a node said before.

    + leader: where kubectl runs; it may be the node itself
    + boot_id: of the new boot

    Raises `RemoteError` when that takes more than five minutes.
    """

    def probe() -> Progress:
        columns = f"{_BOOT} {_READY} {_READY_MESSAGE}"
        query = f"{KUBECTL} --request-timeout=5s get node {node} -o 'jsonpath={columns}'"
        try:
            boot, ready, reason = [
                *run(leader, query + " --ignore-not-found").split(" ", 2),
                "",
                "",
            ][:3]
        except RemoteError:
            return explained(
                Progress(False, "the API server does not answer"), lacks(leader), leader
            )
        if (boot, ready) == (boot_id, "True"):
            return Progress(True, f"node {node} is Ready after its reboot")
        if not boot:
            reason = "the cluster has no such node"
        elif boot != boot_id:
            reason = "its kubelet has not reported since"
        text = f"node {node} is not Ready after its reboot: {reason}"
        return Progress(False, text, stuck=(after_reboot(node, reason),))

    end = wait_until(leader, probe, _READY_S)
    if not end.complete:
        remedy = f"see `journalctl -u kubelet` on {node}, then run again"
        raise RemoteError(failure(*unfinished(end, _READY_S, remedy)))
