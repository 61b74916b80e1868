"""What others have put in force beside what a run sets: named in plan and drift, and left.

They change nothing. What is in force is a person's decision, or the work of a file of theirs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyinfra.context import host

from deploys.engine import changes, remote
from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.cluster.fact import Cluster, Kubeadm
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.in_force.fact import InForce
from gpuboot.cluster import kubelet_in_force, terminating
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.hosts.boot import ConfigLine
from gpuboot.plan import Decision
from gpuboot.verify.alert_path import parse_silences
from gpuboot.verify.evidence import Rule
from gpuboot.verify.silences import lasting

Question = Mapping[str, Any]  # arguments of the fact InForce: one question for all operations


@operation()
def kubelet_compared(
    node: str,
    leader: str,
    question: Question,
    expected: Mapping[str, Any],
    digests: Sequence[str],
    lines: Sequence[ConfigLine],
) -> Commands:
    """Name what this host's kubelet runs with and was not asked to run with.

    + node: its Kubernetes name; leader: inventory name of the leader
    + expected: fields of KubeletConfiguration by dotted path
    + digests: of the configuration that this host is to have, each as good as the other
    + lines: of files of the host that start its kubelet
    """
    state = read(Kubeadm, socket=SOCKET)
    if "kubelet.conf" not in state.files:
        host.noop("there is no kubelet of a cluster to compare")
        return
    answer = remote.read_fact(host.state.inventory.get_host(leader), InForce, **question)
    decisions = (
        [_unread_decision("what kubelets run with is", answer.error)] if answer.error else []
    )
    if node in answer.kubelets:
        pending = (
            state.kubelet_config not in digests
            or state.kubelet_edited
            or bool(state.started)
            or bool(kubelet_in_force.stray_flags(state.kubelet_flags))
        )
        decisions = kubelet_in_force.overrides(answer.kubelets[node], expected, lines, pending)
    elif reason := answer.unanswered.get(node):
        decisions = [_unread_decision(f"what the kubelet of {node} runs with is", reason)]
    changes.respect(*decisions)
    host.noop(_text(decisions, "the kubelet runs as the settings say"))
    yield from ()


@operation()
def boot_compared(decisions: Sequence[Decision]) -> Commands:
    """Name what files of this host do at its next boot to what a run sets.

    + decisions: what such files change
    """
    changes.respect(*decisions)
    host.noop(_text(decisions, "no file undoes at a boot what a run sets"))
    yield from ()


@operation()
def rights_compared(question: Question) -> Commands:
    """Name the rights that somebody has given to everybody. On the leader."""
    answer = read(InForce, **question)
    decisions = [
        Decision(what=f"{item.label} gives {item.holders} {item.role}", why=item.remedy)
        for item in answer.rights
    ]
    changes.respect(*decisions)
    host.noop(_text(decisions, "nobody without a name has rights"))
    yield from ()


@operation()
def namespaces_compared(names: Sequence[str]) -> Commands:
    """Name the namespaces that are being deleted and that a run makes objects in. On the leader.

    + names: of the namespaces that a run makes objects in
    """
    state = read(Cluster, kubeconfig=ADMIN_CONF)
    decisions = terminating.decisions(state.terminating, names)
    changes.respect(*decisions)
    host.noop(_text(decisions, "no namespace is being deleted"))
    yield from ()


@operation()
def silences_compared(question: Question, rules: Sequence[Rule], cluster: str) -> Commands:
    """Name the silences that hold back all of our alerts, or some for good. On the leader.

    + rules: our alerts; cluster: its name
    """
    answer = read(InForce, **question)
    decisions = lasting(parse_silences(answer.silences), rules, cluster, answer.clock)
    if reason := answer.unanswered.get("Alertmanager"):
        decisions.append(_unread_decision("Alertmanager's silences are", reason))
    changes.respect(*decisions)
    host.noop(_text(decisions, "no silence holds back alerts for good"))
    yield from ()


def _text(decisions: Sequence[Decision], default: str) -> str:
    return "; ".join(item.what for item in decisions) or default


def _unread_decision(subject: str, reason: str) -> Decision:
    """What could not be compared. + subject: with its verb, as in `silences are`"""
    return Decision(what=f"{subject} not known", why=reason, is_known=False)
