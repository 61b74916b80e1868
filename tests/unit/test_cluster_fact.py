"""The fact about the cluster, as a shell runs it beside a kubectl that answers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deploys.facts.kubeadm import Cluster, ClusterInPreflight
from gpuboot.kubernetes.cluster_state import ClusterState

KUBECTL = """\
#!/bin/sh
printf '%s\\n' "$(printf %s "$*" | tr '\\n' ' ')" >>"$0.log"
case $* in
  *readyz*) echo ok ;;
  *version*) echo '{"gitVersion": "v1.36.3"}' ;;
  *kubeadm-config*) printf 'ab12\\tkubernetesVersion: v1.36.3\\n' ;;
  *kube-flannel-cfg*) printf '{"Network": "10.244.0.0/16",\\n"Backend": {"Type": "vxlan"}}' ;;
  *clusterpolicies*) exit 1 ;;
  *services*) printf 'class\\tlocal-path\\ttrue\\nservice\\tshop/web\\t30080 30443\\n' ;;
  *) printf 'class\\tlocal-path\\ttrue\\n' ;;
esac
"""


@pytest.fixture
def kubectl(tmp_path: Path) -> Path:
    path = tmp_path / "kubectl"
    path.write_text(KUBECTL)
    path.chmod(0o755)
    (tmp_path / "admin.conf").touch()
    return path


def read(fact: Cluster, kubectl: Path) -> ClusterState:
    done = subprocess.run(
        ["sh", "-c", fact.command(str(kubectl.with_name("admin.conf")))],
        env={**os.environ, "PATH": f"{kubectl.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    return fact.process(done.stdout.splitlines())


def test_a_run_asks_for_what_it_waits_for(kubectl: Path) -> None:
    state = read(Cluster(), kubectl)
    assert (state.error, state.server, state.config) == ("", "1.36.3", "ab12")
    assert (state.recorded, state.classes) == ("1.36.3", {"local-path": True})
    assert (state.flannel_backend, state.node_ports) == ("", {})
    questions = kubectl.with_name("kubectl.log").read_text()
    assert "services" not in questions
    assert "flannel-cfg" not in questions


def test_preflight_asks_for_what_cannot_be_changed_too(kubectl: Path) -> None:
    state = read(ClusterInPreflight(), kubectl)
    assert (state.error, state.classes) == ("", {"local-path": True})
    assert state.flannel_backend == "vxlan"
    assert state.node_ports == {"30080": "shop/web", "30443": "shop/web"}
    # none of them waits for an API server without an end
    questions = kubectl.with_name("kubectl.log").read_text().splitlines()
    assert all("--request-timeout" in line for line in questions)
