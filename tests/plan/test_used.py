"""Hosts that somebody used before: what preflight says of them through the real command line."""

from __future__ import annotations

from tests.plan.test_plan import plan


def test_what_others_left_is_told_and_nothing_is_planned() -> None:
    result = plan(
        {
            "cp1": ["etcd_data 20480 1 default ", "port_unit 2379 etcd.service", "port 2379 etcd",
                    "etcd_process etcd.service /var/lib/etcd/default"],
            "gpu1": ["etcd_data 20480 1 member", "manifest kube-vip.yaml"],
            "cpu1": ["cni_file cilium-cni 05-cilium.conflist", "link tunl0",
                     "cni_file bridge 87-podman.conflist"],
        },
        arguments=(),
    )  # fmt: skip
    output = result.stdout + result.stderr
    assert result.returncode == 1
    for part in (
        "TCP port 2379 is in use by etcd (etcd.service, data in /var/lib/etcd/default)",
        "/var/lib/etcd has data of an etcd (default: 20 MiB",
        "static pods in /etc/kubernetes/manifests (kube-vip.yaml)",
        "[@fake/gpu1] an etcd that gpuboot did not make is there",
        "/etc/cni/net.d/05-cilium.conflist (plugin cilium-cni)",
        "another pod network are there: tunl0",
    ):
        assert part in output, output
    assert "87-podman" not in output
    assert "kubeadm reset --force" not in output
