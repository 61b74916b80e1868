"""A node's kubelet is not upgraded before the control plane."""

from types import SimpleNamespace

import pytest

from deploys.lib import commands, remote
from deploys.operations import kubeadm_changes
from gpuboot.kubernetes.cluster_state import ClusterState


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (ClusterState(recorded="1.36.3", server="1.36.3"), ""),
        # behind a load balancer another control plane may have answered, which is not its turn yet
        (ClusterState(recorded="1.36.3", server="1.36.2"), ""),
        (ClusterState(recorded="1.36.2", server="1.36.2"), "its control plane is of 1.36.2"),
        (ClusterState(error="connection refused"), "connection refused"),
    ],
)
def test_the_leader_goes_first(
    monkeypatch: pytest.MonkeyPatch, state: ClusterState, said: str
) -> None:
    inventory = SimpleNamespace(get_host=lambda name: name)
    host = SimpleNamespace(state=SimpleNamespace(inventory=inventory, is_executing=True))
    monkeypatch.setattr(kubeadm_changes, "host", host)
    monkeypatch.setattr(commands, "current_host", host)
    monkeypatch.setattr(remote, "read_fact", lambda target, fact, **more: state)
    told = kubeadm_changes._too_early("cp1", "1.36.3")
    assert (told is not None) is bool(said)
    if told:
        cause, remedy = told
        assert cause.startswith("not upgraded to Kubernetes 1.36.3 before cp1 is: ")
        assert said in cause
        assert remedy
