"""What refuses pods, by the messages of Kubernetes' admission plugins (v1.36)."""

from __future__ import annotations

import pytest

from gpuboot.kubernetes.refusals import refusal

POD = 'Error creating: pods "web-5f7d8c9b6d-" is forbidden: '
MESSAGES = {
    ("webhook", "deny.example.com"): (
        'Error creating: admission webhook "deny.example.com" denied the request: no owner',
        'Error creating: admission webhook "deny.example.com" denied the request without '
        "explanation",
        # what it says of its own may look like another refusal
        'Error creating: admission webhook "deny.example.com" denied the request: exceeded '
        "quota: team, ask for more",
    ),
    ("webhook-unreachable", "deny.example.com"): (
        'Error creating: Internal error occurred: failed calling webhook "deny.example.com": '
        'failed to call webhook: Post "https://deny.ml.svc:443/?timeout=10s": service "deny" '
        "not found",
        'Error creating: Internal error occurred: failed calling webhook "deny.example.com"; '
        "no further details available",
    ),
    ("admission-policy", "freeze"): (
        POD + "ValidatingAdmissionPolicy 'freeze' with binding 'all' denied request: frozen",
        POD + "ValidatingAdmissionPolicy 'freeze' denied request: frozen",
    ),
    ("pod-security", "restricted:latest"): (
        POD + 'violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)',
    ),
    ("quota", "gpus"): (
        POD + "exceeded quota: gpus, requested: pods=1, used: pods=4, limited: pods=4",
        POD + "failed quota: gpus: must specify limits.cpu for: main",
    ),
    ("limit-range", ""): (
        POD + "minimum cpu usage per Container is 1. No request is specified",
        POD + "[maximum memory usage per Pod is 1Gi, but limit is 2Gi, maximum cpu usage per "
        "Container is 1, but limit is 2]",
        POD + "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
    ),
    ("service-account", "ml/web"): (
        POD + 'error looking up service account ml/web: serviceaccount "web" not found',
        'create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: error '
        'looking up service account ml/web: serviceaccount "web" not found',
    ),
    ("priority-class", "batch"): (POD + "no PriorityClass with name batch was found",),
    ("runtime-class", "nvidia"): (POD + 'pod rejected: RuntimeClass "nvidia" not found',),
    ("namespace-terminating", "ml"): (
        POD + "unable to create new content in namespace ml because it is being terminated",
    ),
}


@pytest.mark.parametrize(
    ("expected", "message"),
    [(expected, text) for expected, texts in MESSAGES.items() for text in texts],
)
def test_what_refuses_and_its_name(expected: tuple[str, str], message: str) -> None:
    result = refusal(message)
    assert result is not None
    assert (result.kind, result.name) == expected
    assert result.name in result.remedy
    assert result.command.startswith("kubectl ")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Error creating: Timeout: request did not complete within requested timeout",
        'Error creating: pods "web-0" already exists',
        'Error creating: Post "https://10.0.0.1:6443": dial tcp 10.0.0.1:6443: connect: refused',
    ],
)
def test_other_failures_are_no_refusals(message: str) -> None:
    assert refusal(message) is None
