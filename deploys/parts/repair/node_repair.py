"""What repairs do to nodes: drained, reset or rebooted, proven, or handed over to a person.

All of it runs beside an operation of the leader, while that executes. Each may be done again.
"""

import shlex
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyinfra.api.host import Host
from pyinfra.context import inventory

from deploys.engine.connections import reach, unreachable
from deploys.engine.current_host import current_host
from deploys.engine.framed import script
from deploys.engine.open_command import CONNECTION_ERRORS
from deploys.engine.remote import RemoteError, run
from deploys.parts.cluster.cordon import wait_until_rejoined
from deploys.parts.cluster.node_drain import drain
from deploys.parts.diagnose.recorder import record
from deploys.parts.reboot.reboot import RebootError, RebootRefusedError, reboot
from deploys.parts.verify import operations as verify
from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.kubeadm import CRI_SOCKET
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts.run_lock import FOLDER
from gpuboot.monitoring.components import expected
from gpuboot.repair.controller import UndecidedError
from gpuboot.repair.handover import handed_files
from gpuboot.repair.repair_model import Repair
from gpuboot.verify import node_proof

RESET = script("repair/gpu_reset.sh")
_LONGEST = 400  # characters of a reason
_READ_S = 50.0  # for what a bundle holds
# what a GPU's maker asks for
_LOOKS = {
    "nvidia-smi-q.txt": "timeout -k 5 60 nvidia-smi -q",
    "kernel.txt": "journalctl -k --no-pager | grep -iE 'nvrm|nvidia|xid' | tail -n 500",
}


@dataclass(frozen=True)
class Hands:
    """Repairs nodes of this inventory. See `gpuboot.repair.controller.Hands`.

    + leader: the host with the administrator's credentials, connected
    + denied: what keeps a host's user from becoming root; None: nothing
    """

    leader: Host
    settings: Settings
    lock: Lock
    nodes: Sequence[Node]
    denied: Callable[[Host], Problem | None]

    def drain(self, node: str) -> str:
        """Move its pods away, as for an upgrade."""
        limits = self.settings.upgrade
        try:
            drain(
                self.leader,
                node,
                limits.drain_timeout_s,
                limits.drain_empty_dirs,
                limits.drain_unmanaged,
            )
        except RemoteError as error:
            return one_line(error)
        return ""

    def reset(self, node: str, gpus: tuple[str, ...]) -> str:
        """Reset GPUs by nvidia-smi, and let all that watches them start anew."""
        variables = {"gpus": " ".join(gpus), "folder": FOLDER, "socket": CRI_SOCKET}
        names = "\n".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
        with _undecided():
            output = run(self._host(node), _detached(f"{names}\n{RESET}"))
        outcome, _, reason = output.strip().partition("\t")
        if outcome == "done":
            return ""
        if outcome == "failed":
            return one_line(f"nvidia-smi does not reset {reason}")
        raise UndecidedError(one_line(reason or "the reset ended without an answer"))

    def reboot(self, node: str) -> str:
        """Reboot its machine, as for an upgrade, and wait until it is Ready again."""
        timeout_s = self.settings.driver.reboot_timeout_s
        try:
            with _undecided(), current_host(self._host(node)) as current:
                boot = reboot(current, f"repair of {node}", timeout_s)
                wait_until_rejoined(self.leader, node, boot)
        except RebootRefusedError as error:
            raise UndecidedError(one_line(error)) from None
        except RebootError as error:
            return one_line(error)
        return ""

    def prove(self, node: str) -> str:
        """Prove its GPUs, as after an upgrade. What nobody can tell is no verdict."""
        self._host(node)
        with _undecided():
            findings, problem = verify.judge_node(
                self.settings, self.lock, self._node(node), self.leader.name
            )
        if problem is None:
            if reason := node_proof.untried(findings):
                raise UndecidedError(one_line(reason))
            return ""
        failures = node_proof.unproven(findings)
        if failures and all(item.status == "unknown" for item in failures):
            raise UndecidedError(one_line(problem[0]))
        return one_line(problem[0])

    def hand_over(self, node: str, repair: Repair) -> str:
        """Pack a diagnosis of the site with what the maker of a GPU asks for."""
        from gpuboot.diagnose import bundle, cause_model
        from gpuboot.diagnose import facts as all_facts
        from gpuboot.diagnose.causes import TABLE

        folder = Path(self.settings.verify.reports) / "repairs"
        lead = next(item for item in self.nodes if item.host == self.leader.name)
        parts = expected(self.settings, self.lock, self.nodes)
        recording = record(self.settings, self.nodes, lead, _READ_S, self.denied, parts)
        facts = all_facts.of(recording)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        files = bundle.contents(recording, cause_model.diagnose(facts, TABLE), facts, when)
        files |= handed_files(node, repair, self._looks(node))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = bundle.write(folder, f"{recording.site}-{node}", files)
        except OSError as error:
            raise UndecidedError(f"the bundle could not be written: {error}") from None
        return f"{socket.gethostname()}:{path.resolve()}"

    def _looks(self, node: str) -> dict[str, str]:
        """What its machine says of its GPUs. One that is silent is handed over as well."""
        outputs = {}
        for name, command in _LOOKS.items():
            try:
                with _undecided():
                    outputs[name] = run(self._host(node), f"{command}; true")
            except UndecidedError as error:
                outputs[name] = f"could not be read: {error}"
        return outputs

    def _node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise UndecidedError(f"{name} is not in the inventory that this runs with")

    def _host(self, name: str) -> Host:
        host: Host = inventory.get_host(self._node(name).host)
        if not reach(host):
            raise UndecidedError(f"{host.name} cannot be reached: {unreachable[host.name]}")
        return host


@contextmanager
def _undecided() -> Iterator[None]:
    """Raise `UndecidedError` where the API server or a host does not answer in the block."""
    try:
        yield
    except (ClusterError, RemoteError, *CONNECTION_ERRORS) as error:
        raise UndecidedError(one_line(str(error) or type(error).__name__)) from None


def _detached(script: str) -> str:
    """The command that runs a script and prints its last line.

    The script goes on to its end where the connection is lost meanwhile.
    """
    return (
        f"mkdir -p {FOLDER} && at=$(mktemp -d {FOLDER}/repair.XXXXXX) && cd $at && "
        f"printf %s {shlex.quote(script)} >script && "
        "{ setsid -w sh script >out 2>err </dev/null; tail -n 1 out; cd / && rm -rf $at; }"
    )


def one_line(text: object) -> str:
    """A reason as it stands in an annotation."""
    return " ".join(str(text).replace("\n    remedy:", ";").split())[:_LONGEST]
