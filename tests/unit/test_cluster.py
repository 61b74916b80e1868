"""The way to the API server: through SSH, with the cluster's own certificates, nothing on disk."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import urllib3

from gpuboot.cluster.api import Cluster, ClusterError, connect, read_kubeconfig, tls
from tests.unit.ssh_server import HOST, Api, api_server, ssh_transport

UNDER_GEVENT = """
from gevent import monkey
monkey.patch_all()
import sys
from pathlib import Path
from gpuboot.cluster.api import connect
from tests.unit.ssh_server import api_server, ssh_transport
with api_server(Path(sys.argv[1])) as kubeconfig, ssh_transport() as transport:
    with connect(kubeconfig, transport) as cluster:
        print(cluster.json("/api/v1/nodes")["path"], cluster.url)
"""


def test_requests_go_through_ssh_with_our_certificate(tmp_path: Path) -> None:
    with (
        api_server(tmp_path) as kubeconfig,
        ssh_transport() as transport,
        connect(kubeconfig, transport) as cluster,
    ):
        answer = cluster.json("/api/v1/pods", {"labelSelector": "app=a b"})
        assert answer["path"] == "/api/v1/pods?labelSelector=app%3Da+b"
        assert answer["who"] == "kubernetes-admin"
        with ThreadPoolExecutor(6) as pool:
            paths = [f"/{number}" for number in range(12)]
            assert [a["path"] for a in pool.map(cluster.json, paths)] == paths


def test_changes_go_the_same_way(tmp_path: Path) -> None:
    with (
        api_server(tmp_path) as kubeconfig,
        ssh_transport() as transport,
        connect(kubeconfig, transport) as cluster,
    ):
        assert cluster.send("POST", "/api/v1/namespaces", {"a": 1})["body"] == {"a": 1}
        assert cluster.send("DELETE", "/api/v1/namespaces/x")["body"] is None
        assert cluster.send("DELETE", "/missing", missing_ok=True)["kind"] == "Status"
        with pytest.raises(ClusterError, match='DELETE /missing: 404 namespaces "x" not found'):
            cluster.send("DELETE", "/missing")


def test_an_answer_that_grows_is_told_line_by_line_until_somebody_stops_it(tmp_path: Path) -> None:
    with (
        api_server(tmp_path) as kubeconfig,
        ssh_transport() as transport,
        connect(kubeconfig, transport) as cluster,
    ):
        start = time.monotonic()
        with cluster.lines("/growing", {"watch": "1"}, 30) as lines:
            line_iterator = iter(lines)
            assert [next(line_iterator), next(line_iterator)] == [b"one", b"two"]
            threading.Timer(0.2, lines.stop).start()
            assert list(line_iterator) == []
        assert time.monotonic() - start < 10
        with pytest.raises(ClusterError, match="404"), cluster.lines("/missing?", {}, 1):
            pass


@pytest.mark.parametrize(
    ("path", "tries"),
    [
        ("/api/v1/namespaces/gpu-operator/pods/exporter-1:9400/proxy/metrics", 1),
        ("/api/v1/namespaces/gpuboot-verify-1/pods/vectoradd-1/log", 1),
        ("/api/v1/nodes", 2),
    ],
)
def test_the_silence_of_a_pod_is_waited_for_once(
    path: str, tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths: list[str] = []
    get = Api.do_GET

    def silent(api: Api) -> None:
        paths.append(api.path)
        time.sleep(1)
        get(api)

    monkeypatch.setattr(Api, "do_GET", silent)
    monkeypatch.setattr("gpuboot.cluster.api._TIMEOUT", urllib3.Timeout(connect=10, read=0.2))
    with (
        api_server(tmp_path) as kubeconfig,
        ssh_transport() as transport,
        connect(kubeconfig, transport) as cluster,
        pytest.raises(ClusterError, match=r"no answer within 0\.2 s"),
    ):
        cluster.get(path)
    assert paths == [path] * tries


def test_it_works_under_gevent(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", UNDER_GEVENT, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stdout.startswith("/api/v1/nodes https://127.0.0.1:"), result.stderr


def test_an_ssh_server_that_forbids_forwarding_is_named(tmp_path: Path) -> None:
    with (
        api_server(tmp_path) as kubeconfig,
        ssh_transport(refuse=True) as transport,
        pytest.raises(ClusterError, match=r"allow TCP forwarding"),
        connect(kubeconfig, transport),
    ):
        pass


def test_errors_carry_status_and_message(tmp_path: Path) -> None:
    with (
        api_server(tmp_path) as kubeconfig,
        ssh_transport() as transport,
        connect(kubeconfig, transport) as cluster,
    ):
        with pytest.raises(ClusterError, match='namespaces "x" not found') as error:
            cluster.get("/missing")
        assert error.value.status == 404
        with pytest.raises(ClusterError, match="no JSON"):
            cluster.json("/text")


def test_a_server_of_another_authority_is_refused(tmp_path: Path) -> None:
    with (
        api_server(tmp_path) as own_server,
        api_server(tmp_path) as foreign_server,
    ):
        port = read_kubeconfig(foreign_server).port
        with pytest.raises(ClusterError, match="CERTIFICATE_VERIFY_FAILED"):
            Cluster(read_kubeconfig(own_server), f"https://127.0.0.1:{port}").get("/")


def test_a_closed_port_is_an_error_not_a_hang(tmp_path: Path) -> None:
    with api_server(tmp_path) as kubeconfig:
        access = read_kubeconfig(kubeconfig)
    with pytest.raises(ClusterError, match="refused"):
        Cluster(access, f"https://127.0.0.1:{access.port}").get("/")


def test_the_key_stays_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "server").mkdir()
    with api_server(tmp_path / "server") as kubeconfig:
        access = read_kubeconfig(kubeconfig)
        tls(access)
    assert [path.name for path in tmp_path.iterdir()] == ["server"]
    assert HOST in repr(access)
    assert "PRIVATE" not in repr(access)


@pytest.mark.parametrize("text", ["", "a: [", "{}", "current-context: x\ncontexts: []"])
def test_what_is_no_kubeconfig_is_an_error(text: str) -> None:
    with pytest.raises(ClusterError, match="not a kubeconfig"):
        read_kubeconfig(text)
