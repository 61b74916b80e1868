"""The facts about what is in force, as a shell runs them beside an API server and a kubeadm."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.in_force.fact import InForce
from deploys.parts.kubeadm.static_pods_fact import StaticPods
from gpuboot.cluster import static_pods
from gpuboot.cluster.open_rights import CLUSTER_BINDINGS, PATHS, ROLES
from gpuboot.cluster.settings_in_force import InForce as State
from tests.cluster_answers import item_list, make_object, served

SILENCES = "/api/v1/namespaces/m/services/a:9093/proxy/api/v2/silences"
RUNNING = {"kubeletconfig": {"maxPods": 20}}
BINDING = make_object(
    "everyone",
    roleRef={"kind": "ClusterRole", "name": "cluster-admin"},
    subjects=[{"kind": "Group", "name": "system:unauthenticated"}],
)
SHELLS = (["dash"], ["busybox", "ash"])


def answers(**objects: Any) -> dict[str, Any]:
    """By path, those of a cluster of two nodes. + objects: by path, `_` for its slashes"""
    return {
        **dict.fromkeys(PATHS[:2], item_list()),
        **{path: make_object(name) for path, (_, name) in ROLES.items()},
        "/api/v1/nodes/cp1/proxy/configz": RUNNING,
        "/api/v1/nodes/gpu1/proxy/configz": RUNNING,
        **objects,
    }


def read(folder: Path, responses: dict[str, Any], silences: str = "") -> State:
    with served(folder, responses) as host:
        state: State = host.read(
            InForce(), kubeconfig=str(host.kubeconfig), nodes=["cp1", "gpu1"], silences=silences
        )
    return state


def test_kubelets_and_rights(tmp_path: Path) -> None:
    state = read(tmp_path, answers(**{CLUSTER_BINDINGS: item_list(BINDING)}))
    assert state.kubelets == dict.fromkeys(("cp1", "gpu1"), RUNNING["kubeletconfig"])
    assert (state.error, state.unanswered, state.silences) == ("", {}, ())
    assert [item.name for item in state.rights] == ["everyone"]


def test_a_kubelet_that_does_not_answer_hides_no_other(tmp_path: Path) -> None:
    refusal = {"code": 503, "message": "dial tcp 10.0.0.2:10250: connect: connection refused"}
    state = read(tmp_path, answers(**{"/api/v1/nodes/gpu1/proxy/configz": refusal}))
    assert list(state.kubelets) == ["cp1"]
    assert state.unanswered == {"gpu1": refusal["message"]}


def test_a_long_refusal_is_quoted_by_its_message(tmp_path: Path) -> None:
    message = (
        'Internal error occurred: failed calling webhook "gone.corp.example.com": failed to call '
        f'webhook: Post "https://policy.default.svc:443/{"x" * 200}": service "policy" not found'
    )
    refusal = {"kind": "Status", "metadata": {}, "status": "Failure", "message": message}
    paths = ("/api/v1/nodes/gpu1/proxy/configz", SILENCES)
    state = read(
        tmp_path, answers(**{path: {**refusal, "code": 500} for path in paths}), silences=SILENCES
    )
    assert state.unanswered == {"gpu1": message, "Alertmanager": message}


def test_an_alertmanager_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    state = read(tmp_path, answers(), SILENCES)
    assert state.unanswered == {"Alertmanager": "there is no such thing"}


def test_a_role_that_is_gone_is_no_error(tmp_path: Path) -> None:
    state = read(tmp_path, answers(**dict.fromkeys(ROLES)))
    assert (state.error, state.rights) == ("", ())


def test_no_cluster_and_no_api_server(tmp_path: Path) -> None:
    with served(tmp_path, answers()) as host:
        pass
    arguments = {"kubeconfig": str(host.kubeconfig), "nodes": [], "silences": ""}
    assert "connect" in host.read(InForce(), **arguments).error
    host.kubeconfig.unlink()
    assert host.read(InForce(), **arguments).error == "there is no cluster yet"


class Machine:
    """A folder that looks like a control plane to the script. + code: how kubeadm ends"""

    def __init__(self, root: Path, code: int = 0) -> None:
        self.root = root
        for folder in ("bin", "etc/kubernetes/manifests", "proc/12", "proc/13"):
            (root / folder).mkdir(parents=True)
        self.manifests = root / "etc/kubernetes/manifests"
        kubeadm = root / "bin/kubeadm"
        kubeadm.write_text(
            f"#!/bin/sh\n[ {code} = 0 ] || {{ echo 'W: x' >&2; echo no >&2; exit {code}; }}\n"
            'grep -q InitConfiguration "$7" || exit 9\n'
            "out=$KUBEADM_INIT_DRYRUN_DIR/etcd.yaml\n"
            '[ "$3" = etcd ] && echo "metadata: {name: etcd}" >"$out"\n'
            "exit 0\n"
        )
        kubeadm.chmod(0o755)
        (root / "proc/12/comm").write_text("etcd\n")
        (root / "proc/12/cmdline").write_bytes(b"etcd\0--name=a b\0")
        (root / "proc/13/comm").write_text("bash\n")

    def read(self, shell: list[str]) -> static_pods.StaticPods:
        script = StaticPods().bare_command({"config": "kind: InitConfiguration\n'"})
        for path in ("/etc/kubernetes", "/proc/[", "/run "):
            script = script.replace(path, f"{self.root}{path}")
        result = subprocess.run(
            [*shell, "-c", script],
            env={**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return static_pods.parse(result.stdout.splitlines())


@pytest.fixture(params=SHELLS, ids=" ".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    value: list[str] = request.param
    return value


def test_manifests_and_processes(tmp_path: Path, shell: list[str]) -> None:
    machine = Machine(tmp_path)
    (machine.manifests / "etcd.yaml").write_text("metadata: {name: x}\n")
    (machine.manifests / ".etcd.yaml.swp").write_text("no manifest")
    state = machine.read(shell)
    assert state.actual == {"etcd.yaml": "metadata: {name: x}\n"}
    assert list(static_pods.changed(state)) == ["etcd.yaml"]
    assert state.running == (("etcd", "--name=a b"),)


def test_a_kubeadm_that_refuses_says_why(tmp_path: Path, shell: list[str]) -> None:
    assert Machine(tmp_path, code=1).read(shell).error == "kubeadm: no"
