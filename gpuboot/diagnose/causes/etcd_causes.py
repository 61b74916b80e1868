"""Alarms of etcd: with one of them it answers and is ready, and refuses to be written to.

Source: etcd 3.6.8 and 3.7.0, server/etcdserver/api/etcdhttp/health.go (the words of /health) and
server/etcdserver/apply/apply.go (what is refused); etcd's documentation, "Maintenance".
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts

_NO_SPACE, _CORRUPT = "ALARM NOSPACE", "ALARM CORRUPT"
_ETCDCTL = (
    "kubectl -n kube-system exec etcd-{node} -- etcdctl --cacert=/etc/kubernetes/pki/etcd/ca.crt "
    "--cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key"
)
# nothing is stored any more, be it a lease or a status; an API server that starts has to write
_EXPLAINS = (
    *("api-server-down", "control-plane-part-failing", "component-missing", "node-not-ready"),
    *("pods-refused", "pod-crash-loop", "namespace-terminating", "prometheus-target-down"),
)


def _alarms(facts: Facts, alarm: str) -> Iterator[Sighting]:
    """The control planes whose member answers the question for its health with an alarm."""
    for host in facts.read:
        if alarm in host.details.etcd:
            yield Sighting(
                node=host.node,
                evidence=(f"http://127.0.0.1:2381/health on {host.node}: {host.details.etcd}",),
            )


def unhealthy(facts: Facts) -> Iterator[Sighting]:
    """Members that answer that they are not well, without an alarm, or do not answer."""
    for host in facts.read:
        health = host.details.etcd
        if not health or '"health":"true"' in health or _NO_SPACE in health or _CORRUPT in health:
            continue
        answered = '"health":"false"' in health
        yield Sighting(
            node=host.node,
            evidence=(f"http://127.0.0.1:2381/health on {host.node}: {health}",),
            # the port that was asked may be another one by its manifest
            confidence=Confidence.CERTAIN if answered else Confidence.LIKELY,
        )


def no_space(facts: Facts) -> Iterator[Sighting]:
    yield from _alarms(facts, _NO_SPACE)


def corrupt(facts: Facts) -> Iterator[Sighting]:
    yield from _alarms(facts, _CORRUPT)


TABLE = (
    Cause(
        id="etcd-no-space",
        meaning="etcd's database has reached its limit: it refuses every write, also once there is "
        "room again, until the alarm is taken back",
        find=no_space,
        remedy="delete what has piled up, which is not refused (`kubectl get --raw /metrics | grep "
        "-E '^apiserver_(storage|resource)_objects'` counts it). Then, by etcdctl as below: "
        "`compact REVISION`, the revision as `endpoint status -w json` has it; `defrag` on each "
        "control plane; `alarm disarm`",
        command=_ETCDCTL + " endpoint status -w table",
        explains=_EXPLAINS,
    ),
    Cause(
        id="etcd-unhealthy",
        meaning="a member of etcd is not well, has no leader, or does not answer",
        find=unhealthy,
        remedy="no leader: most members have to run and to reach each other on port 2380, so bring "
        "back those that are gone; no answer: read why its container ended. One alone that is "
        "gone for good: docs/lifecycle.md replaces a control plane",
        command="sudo crictl ps -a --name etcd; sudo find /var/log/pods/ -path '*_etcd-*.log' "
        "-size +0 -exec tail -n 20 {{}} +",
        on="node",
        explains=("api-server-down", "control-plane-part-failing", "node-not-ready", "leader-lost"),
    ),
    Cause(
        id="etcd-corrupt",
        meaning="members of etcd hold different data: the API server answers with the one or the "
        "other, and writes are refused",
        find=corrupt,
        remedy="docs/lifecycle.md replaces a control plane: do so with each member that differs "
        "from the most; with one member alone, or without a majority, restore the newest backup "
        "(deploys/restore.py)",
        command=_ETCDCTL + " endpoint hashkv --cluster -w table",
        explains=_EXPLAINS,
    ),
)
