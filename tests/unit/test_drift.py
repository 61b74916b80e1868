"""Drift, as people, CI systems and Prometheus read it."""

from __future__ import annotations

from datetime import date

import pytest

from gpuboot.cli.drift_report import Drift, from_plan, metrics, text
from gpuboot.config.support import End
from gpuboot.plan import Change, Decision, Effect, Plan, Step

HOSTS = ("cp1", "gpu1", "gpu2")


@pytest.fixture
def drift() -> Drift:
    steps = [
        Step(
            phase="Base",
            name="Write kernel settings",
            hosts={"gpu1": [Change(subject="file /etc/90.conf", diff=("-a = 1", "+a = 2"))]},
        ),
        Step(
            phase="Kubernetes",
            name="Start the units",
            hosts={
                "gpu1": [
                    Change(
                        subject="unit kubelet.service", field="state", old="failed", new="active"
                    ),
                    Effect(kind="restart", target="kubelet"),
                ],
                "cp1": [],
            },
        ),
    ]
    return from_plan(Plan(cluster="lab", hosts=HOSTS, steps=steps).to_json())


def test_each_difference_is_told_by_host(drift: Drift) -> None:
    assert text(drift).splitlines()[:6] == [
        "cp1: Kubernetes | Start the units",
        "gpu1: Base | Write kernel settings",
        "    ~ file /etc/90.conf",
        "        -a = 1",
        "        +a = 2",
        "gpu1: Kubernetes | Start the units",
    ]
    assert "    ~ unit kubelet.service: state failed → active" in text(drift)
    assert "remedy: `pyinfra" in text(drift).splitlines()[-1]


def test_a_decision_is_told_with_its_lines_and_a_remedy_of_its_own() -> None:
    decision = Decision(what="ConfigMap kube-system/coredns: Corefile", why="x", diff=("-a", "+b"))
    step = Step(phase="Kubernetes", name="Keep kubeadm's objects", hosts={"cp1": [decision]})
    drift = from_plan(Plan(cluster="lab", hosts=HOSTS, decisions=[step]).to_json())
    assert text(drift).splitlines() == [
        "cp1: Kubernetes | Keep kubeadm's objects",
        "    = kept: ConfigMap kube-system/coredns: Corefile: x",
        "        -a",
        "        +b",
        "remedy: a run leaves this, since somebody has decided it; the line says how to undo that",
    ]
    assert 'host="cp1"} 1' in metrics(drift, 0.0)


def test_what_could_not_be_read_is_nobody_s_decision() -> None:
    unread = Decision(what="silences are not known", why="HTTP 503", is_known=False)
    silence = Decision(what="a silence holds back all alerts", why="without an end")
    steps = [
        Step(phase="Monitoring", name="Compare silences", hosts={"cp1": [unread]}),
        Step(phase="Monitoring", name="Compare more", hosts={"cp1": [silence, unread]}),
    ]
    only_unread = from_plan(Plan(cluster="lab", hosts=HOSTS, decisions=steps[:1]).to_json())
    mixed = from_plan(Plan(cluster="lab", hosts=HOSTS, decisions=steps).to_json())
    assert text(only_unread).splitlines()[1:] == [
        "    ? silences are not known: HTTP 503",
        "remedy: this could not be compared, for the reason in its line; "
        "run `gpuboot drift` again then",
    ]
    assert (only_unread.is_unknown, mixed.is_unknown) == (True, False)
    assert "somebody has decided it" in text(mixed)


def test_without_drift_one_line_says_so() -> None:
    none = from_plan(Plan(cluster="lab", hosts=HOSTS).to_json())
    assert text(none) == "no drift: all 3 hosts are as the settings say\n"


def test_metrics_have_every_host_and_when_it_was_compared(drift: Drift) -> None:
    lines = [line for line in metrics(drift, 1763800000.4).splitlines() if line[0] != "#"]
    assert lines == [
        'gpuboot_drift_operations{cluster="lab",host="cp1"} 1',
        'gpuboot_drift_operations{cluster="lab",host="gpu1"} 2',
        'gpuboot_drift_operations{cluster="lab",host="gpu2"} 0',
        'gpuboot_drift_compared_timestamp_seconds{cluster="lab"} 1763800000',
    ]


def test_metrics_tell_when_support_and_keys_end() -> None:
    ends = [
        End("kubernetes.version", "1.36.6", date(2027, 6, 28)),
        End("repository_keys.kubernetes", "DE15", date(2026, 12, 29)),
        End("repository_keys.docker", "9DC8", None),
    ]
    drift = from_plan(Plan(cluster="lab", hosts=HOSTS, ends=ends).to_json())
    lines = [line for line in metrics(drift, 0).splitlines() if "_end_" in line and line[0] != "#"]
    assert lines == [
        'gpuboot_support_end_timestamp_seconds{cluster="lab",command="drift",'
        'key="kubernetes.version",version="1.36.6"} 1814140800',
        'gpuboot_repository_key_end_timestamp_seconds{cluster="lab",command="drift",'
        'repository="kubernetes",fingerprint="DE15"} 1798502400',
    ]
