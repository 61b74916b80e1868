"""What a real cluster of Kubernetes 1.36.3 said while parts were missing and pods were refused."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpuboot.cluster.managed_objects import Key
from gpuboot.cluster.workloads import Workload
from gpuboot.diagnose.cause_model import Finding, diagnose
from gpuboot.diagnose.causes import TABLE
from gpuboot.diagnose.facts import of
from gpuboot.diagnose.site_recording import ClusterRecording, Recording
from gpuboot.monitoring.components import Missing
from tests.unit.diagnose_site import COREDNS, EXPORTERS, cluster, site

RECORDED = json.loads(
    gzip.decompress(Path(__file__).with_name("recorded_absence.json.gz").read_bytes())
)


def findings(state: str) -> dict[str, Finding]:
    cluster = ClusterRecording(**RECORDED[state])
    facts = of(Recording(site="lab", leader="cp1", cluster=cluster))
    return {finding.cause.id: finding for finding in diagnose(facts, TABLE)}


@pytest.mark.parametrize(
    ("state", "cause", "place", "words"),
    [
        (
            "missing",
            "service-account-missing",
            "gpu-operator/nvidia-device-plugin-daemonset",
            'serviceaccount "nvidia-device-plugin" not found',
        ),
        ("refused", "pending-quota", "gpu-operator/nvidia-device-plugin-daemonset", "quota: tight"),
        ("refused", "pod-security", "kube-flannel/kube-flannel-ds", '"restricted:latest"'),
        (
            "refused",
            "limit-range",
            "kube-system/coredns-589f44dc88",
            "maximum memory usage per Container is 20Mi, but limit is 170Mi",
        ),
        (
            "refused",
            "webhook-silent",
            "local-path-storage/local-path-provisioner-58ff896b6f",
            'failed calling webhook "refuse.example.com"',
        ),
        (
            "refused",
            "namespace-terminating",
            "the cluster",
            "finalizers remaining: example.com/hold in 1 resource instances",
        ),
    ],
)
def test_what_refuses_is_named_where_it_does_in_the_clusters_words(
    state: str, cause: str, place: str, words: str
) -> None:
    [sighting] = findings(state)[cause].sightings
    assert sighting.location == place
    assert words in "\n".join(sighting.evidence)


DNS_DOWN = replace(COREDNS, ready=0)


@pytest.mark.parametrize(
    ("owner", "follows"),
    [("kube-system/coredns-589f44dc88", ("limit-range",)), ("local-path-storage/provisioner", ())],
)
def test_what_is_refused_elsewhere_explains_nothing(owner: str, follows: tuple[str, ...]) -> None:
    namespace, _, name = owner.partition("/")
    message = "maximum memory usage per Container is 20Mi, but limit is 170Mi"
    workload = Workload(
        kind="ReplicaSet", namespace=namespace, name=name, desired=2, ready=0, refusal=message
    )
    facts = site(at=cluster(workloads=(DNS_DOWN, EXPORTERS, workload)))
    [symptom] = [
        finding for finding in diagnose(facts, TABLE) if finding.cause.id == "coredns-not-ready"
    ]
    assert symptom.follows == follows


@pytest.mark.parametrize(
    ("item", "follows"),
    [
        (("Service", "kube-system", "kube-dns"), ("component-missing",)),
        (("StorageClass", "", "local-path"), ()),
    ],
)
def test_what_is_missing_elsewhere_explains_nothing(item: Key, follows: tuple[str, ...]) -> None:
    cluster_state = cluster(workloads=(DNS_DOWN, EXPORTERS), missing=Missing((item,)))
    [symptom] = [
        finding
        for finding in diagnose(site(at=cluster_state), TABLE)
        if finding.cause.id == "coredns-not-ready"
    ]
    assert symptom.follows == follows
