"""Faults of the GPU Operator's pods and of the monitoring, each with the cause to be named."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.conftest import Lab
from tests.e2e.diagnose_faults import (
    PATCH,
    Fault,
    Step,
    kubectl,
    on,
    replicas,
    served_instead,
    steps,
)

_GPUS = ("-n", "gpu-operator")
_EXPORTER = "daemonset/nvidia-dcgm-exporter"
_OPERATOR = "deployment/gpu-operator"
_TWICE = (
    "HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n"
    "Content-Type: text/plain; version=0.0.4\\r\\n\\r\\n"
    'DCGM_FI_DEV_GPU_TEMP{gpu="0",pod="a",pod="b"} 40\\n'
)
_ADMIN = "kubectl --kubeconfig /etc/kubernetes/admin.conf"
_ALERTMANAGER = "/api/v1/namespaces/monitoring/services/alertmanager-operated:9093/proxy/api/v2"
_SILENCE = json.dumps(
    {
        "matchers": [{"name": "alertname", "value": ".+", "isRegex": True}],
        "startsAt": "2026-01-01T00:00:00Z",
        "endsAt": "2099-01-01T00:00:00Z",
        "createdBy": "op",
        "comment": "quiet",
    }
)


class _SavedObject:
    """An object that is changed or deleted by hand, and made again as it was."""

    def __init__(self, *which: str, old: str = "", new: str = "") -> None:
        self.which, self.old, self.new = which, old, new
        self.before: dict[str, Any] = {}

    def _read(self, lab: Lab) -> None:
        self.before = json.loads(lab.kubectl("get", *self.which, "-o", "json"))
        for key in ("resourceVersion", "uid", "creationTimestamp", "generation"):
            self.before["metadata"].pop(key, None)

    def change(self, lab: Lab) -> None:
        """Put `new` in place of `old`, in whichever of its values has that."""
        self._read(lab)
        data = self.before["data"]
        changed = {key: text.replace(self.old, self.new) for key, text in data.items()}
        assert changed != data, f"{self.old} is not in {self.which}"
        lab.kubectl("replace", "-f", "-", stdin=json.dumps({**self.before, "data": changed}))

    def delete(self, lab: Lab) -> None:
        self._read(lab)
        lab.kubectl("delete", *self.which)

    def restore(self, lab: Lab) -> None:
        lab.kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(self.before)
        )


def _selector(words: str) -> str:
    """A patch of Prometheus, which takes every monitor as gpuboot deploys it."""
    path = "/spec/serviceMonitorSelector"
    return json.dumps([{"op": "replace", "path": path, "value": json.loads(words)}])


def _restart_exporter(lab: Lab) -> None:
    lab.renew("nvidia-dcgm-exporter", "gpu2")


_COLLECTORS = _SavedObject(
    *_GPUS,
    "configmap",
    "gpuboot-dcgm-metrics",
    old="DCGM_FI_DEV_GPU_TEMP,",
    new="DCGM_FI_DEV_NO_SUCH_FIELD, gauge, none.\nDCGM_FI_DEV_GPU_TEMP,",
)
_MONITOR = _SavedObject(*_GPUS, "servicemonitor", "nvidia-dcgm-exporter")


def _operators(count: int) -> Step:
    return kubectl(*_GPUS, "scale", _OPERATOR, f"--replicas={count}")


def _patched(target: str, path: str, value: object) -> tuple[Step, Step]:
    """Change a workload of the GPU Operator, and go back to its revision before."""
    patch = json.dumps([{"op": "add", "path": path, "value": value}])
    return (
        kubectl(*_GPUS, "patch", target, "--type=json", "-p", patch),
        kubectl(*_GPUS, "rollout", "undo", target),
    )


OPERAND_FAULTS = (
    Fault(
        ("operator-crash-loop",),
        *_patched(_OPERATOR, "/spec/template/spec/containers/0/args/-", "--no-such-flag"),
    ),
    Fault(
        ("device-plugin-missing",),
        *_patched(
            "daemonset/nvidia-device-plugin-daemonset",
            "/spec/template/spec/nodeSelector",
            {"no-such-label": "true"},
        ),
    ),
    Fault(
        ("operand-unlabelled",),
        steps(
            _operators(0),
            kubectl("label", "node", "gpu2", "nvidia.com/gpu.deploy.dcgm-exporter-"),
        ),
        _operators(1),
    ),
    Fault(
        ("time-slicing-attribution",),
        kubectl("label", "node", "gpu2", "--overwrite", "nvidia.com/gpu.replicas=4"),
        kubectl("label", "node", "gpu2", "--overwrite", "nvidia.com/gpu.replicas=1"),
        simulated="the label that GPU feature discovery sets; no GPU is shared",
    ),
    Fault(
        ("exporter-stale-collectors", "exporter-unknown-counter"),
        steps(_COLLECTORS.change, _restart_exporter),
        steps(_COLLECTORS.restore, _restart_exporter),
    ),
    Fault(
        ("exporter-probe-killed",),
        on("gpu2", "pkill -STOP -f '[d]cgm-exporter'; sleep 60"),
        on("gpu2", "true"),  # the kubelet starts it again
    ),
    Fault(
        ("exporter-oom",),
        *_patched(
            _EXPORTER,
            "/spec/template/spec/containers/0/resources",
            {"limits": {"memory": "6Mi"}},
        ),
    ),
    Fault(
        ("exporter-duplicate-labels",),
        *served_instead("gpu2", _TWICE),
        simulated="another page in place of the exporter's",
    ),
    Fault(
        ("port-conflict",),
        steps(
            on(
                "gpu2",
                "systemd-run -q --unit holder sh -c "
                "'until socat TCP-LISTEN:9100,fork,reuseaddr OPEN:/dev/null; do sleep 0.1; done'",
            ),
            kubectl(
                *("-n", "monitoring", "delete", "pods", "--field-selector", "spec.nodeName=gpu2"),
                *("-l", "app.kubernetes.io/name=prometheus-node-exporter"),
            ),
        ),
        on("gpu2", "systemctl stop holder"),
    ),
    Fault(
        ("prometheus-target-down",),
        on(
            "gpu1",
            "nft 'add table ip fault; add chain ip fault in "
            "{ type filter hook input priority -150; }; "
            "add rule ip fault in tcp dport 9100 reject with tcp reset'",
        ),
        on("gpu1", "nft delete table ip fault"),
    ),
    Fault(
        ("prometheus-down", "monitoring-stopped"),
        replicas(0),
        replicas(1),
    ),
    Fault(
        ("alerts-silenced",),
        on(
            "cp1",  # kubectl's raw requests name no content, which Alertmanager refuses
            f"address=$({_ADMIN} -n monitoring get endpoints alertmanager-operated "
            "-o jsonpath='{.subsets[0].addresses[0].ip}'); curl -fsS -H "
            f"'Content-Type: application/json' -d '{_SILENCE}' "
            "http://$address:9093/api/v2/silences",
        ),
        on(
            "cp1",
            f'{_ADMIN} get --raw {_ALERTMANAGER}/silences | grep -o \'"id":"[^"]*"\' | '
            f"cut -d '\"' -f 4 | while read -r id; do {_ADMIN} delete --raw "
            f"{_ALERTMANAGER}/silence/$id || true; done",  # those that have ended stay in the list
        ),
    ),
    Fault(
        ("service-monitor-not-selected",),
        kubectl(*PATCH, _selector('{"matchLabels": {"release": "other"}}')),
        kubectl(*PATCH, _selector("{}")),
    ),
    Fault(
        ("service-monitor-missing",),
        _MONITOR.delete,
        _MONITOR.restore,
    ),
)
