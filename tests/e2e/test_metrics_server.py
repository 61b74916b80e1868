"""metrics-server: `kubectl top` and an HPA on CPU, with certificates that the cluster signs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.settings import home
from tests.e2e.conftest import Lab, until

pytestmark = pytest.mark.lab

CA = "/etc/kubernetes/pki/ca.crt"
BUSYBOX = "docker.io/library/busybox"
# of a person: only kubelets may ask for such a certificate
REQUEST = """
openssl req -new -newkey rsa:2048 -nodes -keyout /dev/null \
  -subj '/O=system:nodes/CN=system:node:cp1' -addext 'subjectAltName=DNS:cp1' 2>/dev/null |
  base64 -w 0
"""


def items(lab: Lab, *arguments: str) -> list[dict[str, Any]]:
    answer = json.loads(lab.kubectl("get", *arguments, "-o", "json"))
    objects: list[dict[str, Any]] = answer["items"]
    return objects


def top(lab: Lab, *arguments: str) -> dict[str, list[str]]:
    """Lines of `kubectl top` by their first word; nothing before it answers for all."""
    result = lab.command(["scripts/lab", "kubectl", "--name", lab.name, "top", *arguments])
    lines = [line.split() for line in result.out.splitlines()] if result.code == 0 else []
    return {words[0]: words[1:] for words in lines}


def addresses(lab: Lab) -> dict[str, str]:
    return {
        node["metadata"]["name"]: next(
            entry["address"]
            for entry in node["status"]["addresses"]
            if entry["type"] == "InternalIP"
        )
        for node in items(lab, "nodes")
    }


def test_the_api_of_metrics_is_available(lab: Lab) -> None:
    service = json.loads(lab.kubectl("get", "apiservice", "v1beta1.metrics.k8s.io", "-o", "json"))
    conditions = {entry["type"]: entry["status"] for entry in service["status"]["conditions"]}
    assert conditions["Available"] == "True"
    assert service["spec"]["service"]["name"] == "metrics-server"


def test_top_has_numbers_for_all_nodes_and_pods(lab: Lab) -> None:
    nodes = set(addresses(lab))
    lines = until(
        lambda: nodes <= set(lines := top(lab, "nodes", "--no-headers")) and lines,
        "kubectl top nodes knows every node",
    )
    for name in nodes:
        assert lines[name][0].endswith("m"), lines
    pods = {
        pod["metadata"]["name"] for pod in items(lab, "pods", "-n", "kube-system")
        if pod["status"]["phase"] == "Running"
    }  # fmt: skip
    until(
        lambda: pods <= set(top(lab, "pods", "-n", "kube-system", "--no-headers")),
        "kubectl top pods knows every pod of kube-system",
    )


def test_kubelets_serve_by_certificates_of_the_cluster(lab: Lab) -> None:
    for name, address in addresses(lab).items():
        url = f"https://{address}:10250/healthz"
        status = lab.ssh("cp1", f"curl -sS -o /dev/null -w '%{{http_code}}' --cacert {CA} {url}")
        assert status == "401", f"{name}: verified, and not let in without a name"
    requests = [
        request
        for request in items(lab, "csr")
        if request["spec"]["signerName"] == "kubernetes.io/kubelet-serving"
    ]
    assert all(request["status"].get("certificate") for request in requests)


def test_somebody_elses_request_is_denied(lab: Lab) -> None:
    request = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "of-a-person"},
        "spec": {
            "request": lab.ssh("cp1", REQUEST).strip(),
            "signerName": "kubernetes.io/kubelet-serving",
            "usages": ["digital signature", "server auth"],
        },
    }
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(request))
    try:
        conditions = until(
            lambda: json.loads(lab.kubectl("get", "csr", "of-a-person", "-o", "json"))[
                "status"
            ].get("conditions"),
            "somebody has decided",
        )
        assert [entry["type"] for entry in conditions] == ["Denied"]
        assert "not prefixed with system:node:" in conditions[0]["message"]
    finally:
        lab.kubectl("delete", "csr", "of-a-person")


def busy(image: str) -> list[dict[str, Any]]:
    """A Deployment whose pods compute until there is a file /tmp/idle, and its HPA."""
    script = "while :; do [ ! -e /tmp/idle ] || sleep 1; done"
    container = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": "50m"}, "limits": {"cpu": "50m", "memory": "32Mi"}},
    }
    labels = {"app": "busy"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    target = {"type": "Utilization", "averageUtilization": 50}
    scaler = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"},
        "minReplicas": 1,
        "maxReplicas": 2,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }
    meta = {"name": "busy", "namespace": "busy"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "busy"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": deployment},
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": meta,
            "spec": scaler,
        },
    ]


@pytest.mark.long
def test_an_autoscaler_follows_cpu_up_and_down(lab: Lab) -> None:
    lock = json.loads((home(lab.name) / "mirror/lab.lock.json").read_text())
    image = f"{BUSYBOX}:{lock['versions']['images']['busybox']}"
    objects = {"apiVersion": "v1", "kind": "List", "items": busy(image)}
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(objects))

    def replicas() -> int:
        answer = lab.kubectl("-n", "busy", "get", "deployment", "busy", "-o", "json")
        return int(json.loads(answer)["status"].get("readyReplicas", 0))

    try:
        until(lambda: replicas() == 2, "the load has brought a second pod", within_s=300)
        for pod in items(lab, "pods", "-n", "busy"):
            name = pod["metadata"]["name"]
            lab.ssh("cp1", f"kubectl -n busy exec {name} -- sh -c ': >/tmp/idle'")
        until(lambda: replicas() == 1, "without load one pod is left", within_s=300)
    finally:
        lab.kubectl("delete", "namespace", "busy", "--wait=false")
