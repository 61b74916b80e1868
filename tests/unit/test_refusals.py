"""What refuses pods is named, with what a person does about it. Texts are the API server's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.cluster import refusals
from gpuboot.cluster.cluster_state import ClusterState, PodIssue
from gpuboot.cluster.stuck import of_workload
from gpuboot.cluster.workloads import Workload
from tests.unit.test_remedies import all_checked

EXPORTER = Workload("DaemonSet", "gpu-operator", "nvidia-dcgm-exporter", 1, 0, True, "", missing=1)
_POD = 'Error creating: pods "nvidia-dcgm-exporter-6x4dq" is forbidden: '
CASES = (
    (
        f"(combined from similar events): {_POD}failed quota: corp: must specify limits.cpu for: "
        "toolkit-validation",
        "quota corp",
        "kubectl -n gpu-operator describe resourcequota corp",
    ),
    (
        'Error creating: admission webhook "pods.corp.example.com" denied the request: no pods',
        "admission webhook pods.corp.example.com",
        "mutatingwebhookconfigurations",
    ),
    (
        'Error creating: Internal error occurred: failed calling webhook "gone.corp.example.com": '
        'failed to call webhook: Post "https://policy.default.svc/": service "policy" not found',
        "admission webhook gone.corp.example.com does not answer",
        "delete its configuration",
    ),
    (
        f'{_POD}violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
        "Pod Security Standard restricted:latest",
        "kubectl label --overwrite namespace gpu-operator",
    ),
    (
        f"{_POD}maximum memory usage per Container is 20Mi, but limit is 170Mi",
        "LimitRange of the namespace",
        "kubectl -n gpu-operator describe limitrange",
    ),
    (
        f"{_POD}ValidatingAdmissionPolicy 'no-pods' with binding 'no-pods' denied request: frozen",
        "ValidatingAdmissionPolicy no-pods",
        "kubectl get validatingadmissionpolicybindings",
    ),
)


@pytest.mark.parametrize(("message", "name", "command"), CASES, ids=[case[1] for case in CASES])
def test_the_remedy_names_what_refuses(message: str, name: str, command: str) -> None:
    issue = PodIssue("gpu-operator", "nvidia-dcgm-exporter", "", message, kind="refused")
    state = ClusterState(pod_issues=(issue,))
    [reason] = of_workload(EXPORTER, state)
    assert message in reason.cause
    assert name in reason.remedy
    assert command in reason.remedy
    [reason] = of_workload(replace(EXPORTER, refusal=message), ClusterState())
    assert name in reason.remedy


def test_words_that_name_nothing_have_the_general_remedy() -> None:
    assert refusals.remedy('pods "x" is forbidden: no', "ml") == ""


@pytest.mark.parametrize("remedy", refusals.REMEDIES.values(), ids=lambda item: item.subject)
def test_its_commands_are_commands(remedy: refusals.Remedy) -> None:
    assert all_checked("a refusal", remedy.command.format(name="corp", namespace="ml"))
