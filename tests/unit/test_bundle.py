"""The archive for support holds none of the secrets that are planted wherever some can be."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster.api import ClusterError
from gpuboot.config import redaction
from gpuboot.config.settings import parse_settings
from gpuboot.diagnose import bundle, cause_model, cluster_reading, facts, paths
from gpuboot.diagnose.causes import TABLE
from gpuboot.diagnose.site_recording import (
    ClusterRecording,
    HostRecording,
    Recording,
    without_secrets,
)

MARK = "pLaNtEd"
JWT = f"eyJhbGciOiJSUzI1NiIsImtpZCI6I.eyJpc3MiOiJr{MARK}ZXRlcy9zZXJ.c2ln{MARK}bmF0dXJl"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{MARK}MIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
POD: dict[str, Any] = {
    "metadata": {
        "name": "train-0",
        "namespace": "ml",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": f'{{"password":"{MARK}"}}'
        },
        "managedFields": [{"manager": MARK}],
    },
    "spec": {
        "nodeName": "gpu1",
        "containers": [
            {
                "name": "main",
                "image": "x",
                "env": [{"name": "DB_PASSWORD", "value": MARK}],
                "args": ["--token", MARK],
                "command": ["sh", "-c", f"export KEY={MARK}"],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
        ],
    },
    "status": {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": "main",
                "ready": False,
                "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {
                    "terminated": {
                        "exitCode": 1,
                        "message": f"login failed: password={MARK}",
                        "finishedAt": "2026-11-22T23:59:30Z",
                    }
                },
            }
        ],
    },
}
EVENT = {
    "metadata": {"namespace": "ml", "creationTimestamp": "2026-11-22T23:59:30Z"},
    "involvedObject": {"kind": "Pod", "namespace": "ml", "name": "train-0"},
    "reason": "Failed",
    "message": f"Head https://bob:{MARK}@mirror.example/v2/: 401 Unauthorized",
    "type": "Warning",
}
# what a host prints, by kind of secret
JOURNAL = (
    f"log\tkubelet E1122 kubeadm join 10.0.0.11:6443 --token abcdef.{'0123456789abcdef'} "
    f"--certificate-key {MARK}0123",
    f"log\tkubelet E1122 Authorization: Bearer {MARK}abcdefgh0123",
    f"log\tcontainerd level=error proxyconnect tcp: http://proxyuser:{MARK}@proxy.example:3128",
    f"log\tkubelet E1122 token={JWT}",
    f"log\tkubelet E1122 client-key-data: {MARK}LS0tLS1CRUdJTiBSU0E=",
    f"log\tcontainerd level=error aws_secret_access_key = {MARK}",
    'log\tkubelet E1122 {"apiKey": "%s", "user": "bob"}' % MARK,  # noqa: UP031
    f"log\tkubelet E1122 posting to https://hooks.slack.com/services/T00/B00/{MARK}",
)


class Server:
    """An API server whose every answer has something to hide."""

    def now(self) -> Any:
        from datetime import UTC, datetime

        return datetime(2026, 11, 23, tzinfo=UTC)

    def service(self, namespace: str, name: str, port: int | str) -> str:
        return f"/api/v1/namespaces/{namespace}/services/{name}:{port}/proxy"

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        assert "secrets" not in path, "Secrets are not read"
        if path == paths.PODS:
            return {"items": [POD]}
        if path == "/api/v1/events":
            return {"items": [EVENT]}
        if path == "/api/v1/configmaps":
            meta = {"namespace": "gpu-operator", "name": "metrics"}
            return {"items": [{"metadata": meta, "data": {"metrics": MARK, "other": MARK}}]}
        if "targets" in path:
            raise ClusterError(f"GET {path}: 401 for token={MARK}", 401)
        return {"items": []}

    def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        return f"{PEM}\nCUDA: HF_TOKEN={MARK}\ndial tcp: http://u:{MARK}@x\n".encode()


def site_settings(folder: Path) -> Any:
    """Settings with a secret of each kind in files."""
    for name in ("webhook", "routing", "registry"):
        (folder / name).write_text(f"https://example.org/{MARK}-of-{name}\n")
        (folder / name).chmod(0o600)
    webhook = {"webhook": {"file": str(folder / "webhook")}}
    return parse_settings({"alertmanager": {"slack": webhook}})


def recording(folder: Path) -> Recording:
    lines = (*JOURNAL, "end\tok")
    recorded = HostRecording(
        node="gpu1", host="gpu1", role="worker", gpus=1, parts={"diagnose": lines},
        error=f"sudo: password={MARK}",
    )  # fmt: skip
    cluster: Any = Server()
    return Recording(
        site="lab",
        leader="cp1",
        hosts=(recorded,),
        cluster=cluster_reading.read(cluster, "monitoring", 20, lambda line: None),
        settings={"proxy": {"https": f"http://proxyuser:{MARK}@proxy.example:3128"}},
        reports=str(folder),
    )


def test_the_objects_are_cut_down_before_they_are_kept() -> None:
    cluster: Any = Server()
    result = cluster_reading.read(cluster, "monitoring", 20, lambda line: None)
    text = json.dumps(result.found)
    assert "train-0" in text
    assert "DB_PASSWORD" in text  # the name alone
    assert text.count(MARK) == 2  # in an event's text, and in what the container said
    assert "--token" not in text


def test_no_planted_secret_is_in_the_archive(tmp_path: Path) -> None:
    (tmp_path / "20260101T000000Z-lab").mkdir()
    (tmp_path / "20260101T000000Z-lab" / "run.json").write_text(
        json.dumps({"failed": f"http://u:{MARK}@x", "password": MARK})
    )
    raw = recording(tmp_path)
    assert MARK in raw.to_json()
    masked = without_secrets(raw, redaction.masker([f"{MARK}-known"]))
    state = facts.of(masked)
    diagnosis = cause_model.diagnose(state, TABLE)
    path = bundle.write(tmp_path, "lab", bundle.contents(masked, diagnosis, state, "now"))
    assert path.stat().st_mode & 0o077 == 0
    with tarfile.open(path) as archive:
        names = archive.getnames()
        texts = {name: archive.extractfile(name) for name in names}
        files = {name: stream.read().decode() for name, stream in texts.items() if stream}
    assert {name.partition("/")[2] for name in names} == {
        *("README.txt", "diagnosis.txt", "diagnosis.json", "recording.json", "settings.json"),
        "reports/run.json",
    }
    leaks = {name: text[text.find(MARK) - 80 :][:200] for name, text in files.items()
            if MARK in text or "0123456789abcdef" in text}  # fmt: skip
    assert leaks == {}
    # it is still of use: what is no secret stands there, and it is read again
    recorded = next(text for name, text in files.items() if name.endswith("recording.json"))
    assert json.loads(recorded)["hosts"][0]["node"] == "gpu1"
    assert "proxy.example:3128" in recorded


def test_what_settings_name_is_known_by_its_content(tmp_path: Path) -> None:
    settings = site_settings(tmp_path)
    contents = list(redaction.known_secrets(settings))
    assert contents == [f"https://example.org/{MARK}-of-webhook\n"]
    mask = redaction.masker(contents)
    assert MARK not in mask(f"POST https://example.org/{MARK}-of-webhook failed")


@pytest.mark.parametrize(
    "text",
    [
        'no runtime for "nvidia" is configured',
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu",
        "https://10.0.0.11:6443/livez",
        "annotation 2dd14ae183a0ca90acc2574c48f6154a4208888e578c393e37107b4a0d91bc85",
        "/etc/containerd/conf.d/99-nvidia.toml: version 4",
        "x509: certificate signed by unknown authority",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redaction.masker()(text) == text


def test_a_cluster_that_does_not_answer_is_told() -> None:
    class Silent(Server):
        def now(self) -> Any:
            raise ClusterError("GET /version: connection refused")

    cluster: Any = Silent()
    result = cluster_reading.read(cluster, "monitoring", 5, lambda line: None)
    assert result == ClusterRecording(error="GET /version: connection refused")


def test_an_api_server_without_etcd_is_asked_nothing_more() -> None:
    class WithoutEtcd(Server):
        def get(self, path: str, *arguments: Any, **options: Any) -> Any:
            assert path == "/readyz"
            body = "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n"
            raise ClusterError(f"GET {path}: 500 {body}", 500)

        def json(self, path: str, *arguments: Any, **options: Any) -> Any:
            raise AssertionError(path)

    cluster: Any = WithoutEtcd()
    result = cluster_reading.read(cluster, "monitoring", 5, lambda line: None)
    assert result == ClusterRecording(error="the API server answers that it does not reach etcd")
