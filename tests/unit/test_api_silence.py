"""An API server that does not answer: what its host says, and how long that is waited for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploys.engine.framed import script
from deploys.parts.cluster.api_server_fact import RejectedReport
from deploys.parts.cluster.api_silence import explained
from deploys.parts.diagnose.fact import SCRIPT as DIAGNOSE
from gpuboot.cluster.node_reports import LEASES
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.stuck import CERTAIN_S, UNCERTAIN_S, WHILE_OTHERS_START_S
from gpuboot.hosts.fact_output import Fields
from tests.cluster_answers import served

CP1: Any = SimpleNamespace(name="cp1")
API = "    - --etcd-servers=https://127.0.0.1:2379\n"
CRICTL = """\
#!/bin/sh
case "$*" in
  *"logs --tail 1"*) cat "$ROOT/said" ;;
  *"ps --name"*running*) case "$*" in *kube-apiserver*) cat "$ROOT/running" ;; *) echo e1 ;; esac ;;
  *exited*) echo a1 ;;
esac
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A control plane on which all is well."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/kube-apiserver.yaml").write_text(API)
    (tmp_path / "manifests/etcd.yaml").write_text("")
    (tmp_path / "running").write_text("a2\n")
    (tmp_path / "said").write_text("")
    (tmp_path / "bin").mkdir()
    program(tmp_path, "systemctl", "#!/bin/sh\nprintf 'active\\nrunning\\n'\n")
    program(tmp_path, "crictl", CRICTL)
    return tmp_path


def program(root: Path, name: str, text: str) -> None:
    path = root / "bin" / name
    path.write_text(text)
    path.chmod(0o755)


def lacks(root: Path) -> list[list[str]]:
    command = script("cluster/api_server_fact.sh").replace(
        "/etc/kubernetes/manifests", str(root / "manifests")
    )
    path = f"{root / 'bin'}:{os.environ['PATH']}"
    result = subprocess.run(
        ["sh", "-c", command], env={"PATH": path, "ROOT": str(root)}, capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (0, "")
    return Fields(result.stdout.splitlines()).rows("lacks")


def test_nothing_is_told_of_a_control_plane_that_runs(host: Path) -> None:
    assert lacks(host) == []


@pytest.mark.parametrize("name", ["kube-apiserver", "etcd"])
def test_a_manifest_that_is_gone_is_named(host: Path, name: str) -> None:
    manifest = host / f"manifests/{name}.yaml"
    manifest.unlink()
    assert lacks(host) == [[name, f"{manifest} does not exist"]]


def test_a_diagnosis_sees_a_manifest_that_is_gone_though_the_api_server_answers(host: Path) -> None:
    for name in ("kubelet.conf", "pki/ca.key"):
        (host / name).parent.mkdir(exist_ok=True)
        (host / name).write_text("")
    for name in ("kube-controller-manager", "kube-scheduler"):
        (host / f"manifests/{name}.yaml").write_text("")

    def missing_manifests() -> list[str]:
        script = DIAGNOSE.replace("/etc/kubernetes", str(host)).partition("# --- the API server")[0]
        part = script[script.index("# --- parts of the control plane") :]
        put = 'put() { printf \'%s\\t%s\\n\' "$1" "$2"; }\n'
        return subprocess.check_output(["sh", "-c", put + part], text=True).splitlines()

    assert missing_manifests() == []
    (host / "manifests/kube-scheduler.yaml").unlink()
    assert missing_manifests() == ["no_manifest\tkube-scheduler"]
    (host / "pki/ca.key").unlink()  # of a worker
    assert missing_manifests() == []


def test_etcd_elsewhere_needs_no_manifest(host: Path) -> None:
    (host / "manifests/etcd.yaml").unlink()
    (host / "manifests/kube-apiserver.yaml").write_text(API.replace("127.0.0.1", "192.0.2.9"))
    assert lacks(host) == []


def test_units_that_do_not_run_are_named(host: Path) -> None:
    state = "#!/bin/sh\ncase $* in *kubelet*) printf 'inactive\\ndead\\n' ;; *) "
    program(host, "systemctl", state + "printf 'active\\nrunning\\n' ;; esac\n")
    assert lacks(host) == [["kubelet", "it is inactive dead"]]


def test_the_last_line_of_a_server_that_ends_is_quoted(host: Path) -> None:
    (host / "running").write_text("")
    (host / "said").write_text("Error: unknown flag: --no-such\n")
    assert lacks(host) == [["kube-apiserver", "it has ended: Error: unknown flag: --no-such"]]


@pytest.mark.parametrize(
    ("part", "cause", "after_s", "remedy"),
    [
        (
            "kube-apiserver",
            "/etc/kubernetes/manifests/kube-apiserver.yaml does not exist",
            CERTAIN_S,
            "kubeadm init phase control-plane apiserver --config /etc/gpuboot/kubeadm.yaml",
        ),
        ("etcd", "etcd.yaml does not exist", CERTAIN_S, "kubeadm init phase etcd local"),
        ("kubelet", "it is inactive dead", UNCERTAIN_S, "systemctl start kubelet"),
        ("kube-apiserver", "it has ended: Error: unknown flag: --x", CERTAIN_S, "--x"),
        (
            "kube-apiserver",
            "it has ended: connection error: dial tcp 127.0.0.1:2379: connect: connection refused",
            WHILE_OTHERS_START_S,
            "manifests/kube-apiserver.yaml",
        ),
    ],
)
def test_each_reason_has_its_time_and_its_remedy(
    part: str, cause: str, after_s: float, remedy: str
) -> None:
    look = explained(Progress(False, "no answer"), [(part, cause)], CP1)
    [reason] = look.stuck
    assert cause in look.text
    assert reason.after_s == after_s
    assert remedy in f"{reason.cause} {reason.remedy}"


# Kubernetes 1.36.3, a webhook for */* whose service does not exist
NO_SERVICE = (
    'Internal error occurred: failed calling webhook "gone.corp.example.com": failed to call '
    'webhook: Post "https://policy.default.svc:443/?timeout=10s": service "policy" not found'
)


@pytest.mark.parametrize(
    ("answer", "rejection"),
    [
        ({"code": 500, "message": NO_SERVICE}, NO_SERVICE),
        ({"kind": "Lease"}, ""),
        (None, ""),  # a node that never reported
    ],
)
def test_a_report_that_changes_nothing_shows_what_refuses_reports(
    tmp_path: Path, answer: Any, rejection: str
) -> None:
    with served(tmp_path, {f"{LEASES}/gpu1?dryRun=All": answer}) as api:
        arguments = {"kubeconfig": str(api.kubeconfig), "node": "gpu1"}
        assert api.read(RejectedReport(), **arguments) == rejection
        assert "-X PATCH" in api.log.read_text()
