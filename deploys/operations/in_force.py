"""What others have put in force beside what a run sets: named in plan and drift, and left.

They change nothing. What is in force is a person's decision, or the work of a file of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyinfra.context import host

from deploys.facts.in_force import InForce
from deploys.facts.kubeadm import Kubeadm
from deploys.lib import changes, remote
from deploys.lib.answers import read
from deploys.lib.commands import Commands
from deploys.lib.operation import operation
from deploys.operations.kubeadm import SOCKET
from gpuboot.alerting.silences import lasting
from gpuboot.hosts.boot import ConfigLine
from gpuboot.kubernetes import kubelet_in_force
from gpuboot.plan import Kept
from gpuboot.verify.alert_path import parse_silences
from gpuboot.verify.evidence import Rule

Question = Mapping[str, Any]  # arguments of the fact InForce: one question for all operations


@operation()
def kubelet_compared(
    node: str,
    leader: str,
    question: Question,
    asked: Mapping[str, Any],
    digests: Sequence[str],
    lines: Sequence[ConfigLine],
) -> Commands:
    """Name what this host's kubelet runs with and was not asked to run with.

    + node: its Kubernetes name; leader: inventory name of the leader
    + asked: fields of KubeletConfiguration by dotted path
    + digests: of the configuration that this host is to have, each as good as the other
    + lines: of files of the host that start its kubelet
    """
    state = read(Kubeadm, socket=SOCKET)
    if "kubelet.conf" not in state.files:
        host.noop("there is no kubelet of a cluster to compare")
        return
    found = remote.read_fact(host.state.inventory.get_host(leader), InForce, **question)
    kept = [Kept(what="what kubelets run with is not known", why=it)] if (it := found.error) else []
    if node in found.kubelets:
        pending = (
            state.kubelet_config not in digests
            or state.kubelet_edited
            or bool(state.started)
            or bool(kubelet_in_force.stray_flags(state.kubelet_flags))
        )
        kept = kubelet_in_force.overrides(found.kubelets[node], asked, lines, pending)
    elif why := found.unanswered.get(node):
        kept = [Kept(what=f"what the kubelet of {node} runs with is not known", why=why)]
    changes.keep(*kept)
    host.noop(_text(kept, "the kubelet runs as the settings say"))
    yield from ()


@operation()
def boot_compared(kept: Sequence[Kept]) -> Commands:
    """Name what files of this host do at its next boot to what a run sets. + kept: these"""
    changes.keep(*kept)
    host.noop(_text(kept, "no file undoes at a boot what a run sets"))
    yield from ()


@operation()
def rights_compared(question: Question) -> Commands:
    """Name the rights that somebody has given to everybody. On the leader."""
    found = read(InForce, **question)
    kept = [
        Kept(what=f"{item.label} gives {item.holders} {item.role}", why=item.remedy)
        for item in found.rights
    ]
    changes.keep(*kept)
    host.noop(_text(kept, "nobody without a name has rights"))
    yield from ()


@operation()
def silences_compared(question: Question, rules: Sequence[Rule], cluster: str) -> Commands:
    """Name the silences that hold back all of our alerts, or some for good. On the leader.

    + rules: our alerts; cluster: its name
    """
    found = read(InForce, **question)
    kept = lasting(parse_silences(found.silences), rules, cluster, found.clock)
    if why := found.unanswered.get("Alertmanager"):
        kept.append(Kept(what="Alertmanager's silences are not known", why=why))
    changes.keep(*kept)
    host.noop(_text(kept, "no silence holds back alerts for good"))
    yield from ()


def _text(kept: Sequence[Kept], otherwise: str) -> str:
    return "; ".join(item.what for item in kept) or otherwise
