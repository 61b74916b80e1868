"""Preflight names what a boot would undo, or how the kubelet would not start after one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.hosts.boot import BootState, ConfigLine
from gpuboot.preflight import boot_problems, kubelet_problems
from tests.unit.test_preflight import CLEAN, WORKER, causes
from tests.unit.test_preflight_platform import ROCKY

STUB = {"/etc/resolv.conf": ("127.0.0.53",), "/run/systemd/resolve/resolv.conf": ("10.0.0.2",)}
DNSMASQ = {"/etc/resolv.conf": ("127.0.0.1", "10.0.0.2")}
BEHIND = "/run/NetworkManager/no-stub-resolv.conf"
JOINED = {"/etc/kubernetes/kubelet.conf": "https://10.0.0.1:6443"}
DROP_IN = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
PACKAGE = (
    "ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS "
    "$KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"
)


def line(file: str, text: str) -> ConfigLine:
    return ConfigLine(file, 3, text)


def flags(text: str, file: str = "/etc/default/kubelet") -> BootState:
    return BootState(kubelet=(line(file, text),))


def boot_causes(
    state: BootState, settings: dict[str, Any] | None = None, **changes: Any
) -> list[str]:
    return causes(settings=settings, boot=state, **changes)


@pytest.mark.parametrize(
    ("state", "part"),
    [
        (BootState(hosts_readonly=True), "/etc/hosts cannot be written, not even by root"),
        (BootState(sysctls=(line("/etc/sysctl.d/zz.conf", "net.ipv4.ip_forward=0"),)),
         "/etc/sysctl.d/zz.conf:3 sets `net.ipv4.ip_forward=0` at each boot, after"),
        (BootState(sysctls=(line("/etc/ufw/sysctl.conf", "net/ipv4/ip_forward=0"),)),
         "Kubernetes needs net.ipv4.ip_forward = 1"),
        (BootState(swap=(line("/etc/rc.local", "swapon /swapfile"),)),
         "/etc/rc.local:3 turns swap on at each boot (`swapon /swapfile`)"),
        (BootState(swap=(line("/etc/waagent.conf", "ResourceDisk.EnableSwap=y"),)),
         "/etc/waagent.conf:3 turns swap on"),
        (BootState(resolvers=DNSMASQ), "/etc/resolv.conf names 127.0.0.1, a name server on the"),
        (BootState(resolvers={"/etc/resolv.conf": ("::1",)}), "names ::1"),
        # resolved asks a server on the node as well
        (BootState(resolvers={**STUB, "/run/systemd/resolve/resolv.conf": ("127.0.0.1",)},
                   units=frozenset({"systemd-resolved"})),
         "/run/systemd/resolve/resolv.conf names 127.0.0.1"),
        # the stub is named, and systemd-resolved does not run
        (BootState(resolvers=STUB), "/etc/resolv.conf names 127.0.0.53"),
        (flags("KUBELET_EXTRA_ARGS=--network-plugin=cni"), "the kubelet --network-plugin, which"),
        (flags('KUBELET_EXTRA_ARGS="--v=2 --container-runtime=remote"'), "--container-runtime,"),
        (flags("KUBELET_EXTRA_ARGS=--pod-infra-container-image=registry.k8s.io/pause:3.9"),
         "/etc/default/kubelet:3 gives the kubelet --pod-infra-container-image"),
        (flags("KUBELET_EXTRA_ARGS=--event_storage_age_limit=1h"),
         "the kubelet --event-storage-age-limit, which Kubernetes 1.37 does not have"),
        (flags('Environment="KUBELET_NETWORK_ARGS=--cni-bin-dir=/opt/cni/bin"', DROP_IN),
         f"{DROP_IN}:3 gives the kubelet --cni-bin-dir"),
        (flags("ExecStart=/usr/local/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf",
               DROP_IN), f"{DROP_IN}:3 starts the kubelet by a command of its own"),
        (flags(PACKAGE.replace(" $KUBELET_CONFIG_ARGS", ""), DROP_IN),
         "without $KUBELET_CONFIG_ARGS, by which kubeadm configures it"),
    ],
)  # fmt: skip
def test_what_a_boot_would_undo_is_one_problem(state: BootState, part: str) -> None:
    [cause] = boot_causes(state)
    assert part in cause


@pytest.mark.parametrize(
    ("state", "settings"),
    [
        (BootState(swap=(line("/etc/rc.local", "swapon -a"),)), {"fail_swap_on": False}),
        (BootState(resolvers=STUB, units=frozenset({"systemd-resolved"})), {}),
        (BootState(resolvers={**DNSMASQ, BEHIND: ("10.0.0.2",)}),
         {"kubelet": {"resolvConf": BEHIND}}),
        (BootState(resolvers=DNSMASQ), {"kubelet": {"resolvConf": "/etc/kubernetes/resolv.conf"}}),
        (BootState(resolvers={"/etc/resolv.conf": ()}), {}),
        (flags("KUBELET_EXTRA_ARGS="), {}),
        (flags("KUBELET_EXTRA_ARGS=--v=2 --node-labels=a=network-plugin"), {}),
        (flags("ExecStart=", DROP_IN), {}),
        (flags(PACKAGE, DROP_IN), {}),  # packages of before put it there
    ],
)  # fmt: skip
def test_what_holds_passes(state: BootState, settings: dict[str, Any]) -> None:
    assert boot_causes(state, {"cluster": settings}) == []


def test_a_file_that_is_chosen_has_to_be_there() -> None:
    data = {"cluster": {"kubelet": {"resolvConf": "/run/systemd/resolve/resolv.conf"}}}
    [cause] = boot_causes(BootState(resolvers={"/etc/resolv.conf": ("10.0.0.2",)}), data)
    assert cause.startswith("cluster.kubelet.resolvConf names /run/systemd/resolve/resolv.conf")
    assert boot_causes(BootState(resolvers=STUB), data) == []
    assert boot_causes(BootState(), data) == []  # nothing was read of that host


def test_a_kubelet_s_file_that_is_gone_stops_new_pods() -> None:
    missing_file = "/run/systemd/resolve/resolv.conf"
    state = BootState(resolvers={"/etc/resolv.conf": ("10.0.0.2",)}, resolver_missing=missing_file)
    member = replace(CLEAN, boot=state, kubeconfigs=JOINED)
    [(cause, remedy)] = boot_problems.problems(member, parse_settings({}))
    assert f"takes name servers from {missing_file}" in cause
    assert "systemctl enable --now systemd-resolved" in remedy
    assert '{"resolvConf": "/etc/resolv.conf"}' in remedy
    # a run that names another one puts it right, and so does a join
    site_settings = parse_settings({"cluster": {"kubelet": {"resolvConf": "/etc/resolv.conf"}}})
    assert list(boot_problems.problems(member, site_settings)) == []
    assert boot_causes(state) == []


def test_the_remedy_names_the_file_with_the_real_servers() -> None:
    state = replace(CLEAN, boot=BootState(resolvers={**DNSMASQ, BEHIND: ("10.0.0.2",)}))
    [(_, remedy)] = boot_problems.problems(state, parse_settings({}))
    assert f'set cluster.kubelet = {{"resolvConf": "{BEHIND}"}}' in remedy
    assert "write" not in remedy
    state = replace(CLEAN, boot=BootState(resolvers=DNSMASQ))
    [(_, remedy)] = boot_problems.problems(state, parse_settings({}))
    assert "lines to /etc/kubernetes/resolv.conf on each node, and set cluster.kubelet" in remedy


def test_a_node_of_a_living_cluster_goes_on_with_its_resolver() -> None:
    state = replace(CLEAN, boot=BootState(resolvers=DNSMASQ), kubeconfigs=JOINED)
    assert list(boot_problems.problems(state, parse_settings({}))) == []


def test_each_family_has_its_own_file_of_flags() -> None:
    removed_flag = "KUBELET_EXTRA_ARGS=--network-plugin=cni"
    assert boot_causes(flags(removed_flag, "/etc/sysconfig/kubelet")) == []
    rocky = replace(ROCKY, boot=flags(removed_flag, "/etc/sysconfig/kubelet"))
    debian = replace(ROCKY, boot=flags(removed_flag))
    warnings = [
        kubelet_problems.warnings([WORKER], {WORKER.host: state}, parse_settings({}))
        for state in (rocky, debian)
    ]
    assert warnings == [[], []]


def test_a_flag_is_gone_since_its_version() -> None:
    pause = flags("KUBELET_EXTRA_ARGS=--pod-infra-container-image=x")
    older = {"versions": {"kubernetes": {"version": "1.34.6"}}}
    assert boot_causes(pause, older) == []
    assert len(boot_causes(flags("KUBELET_EXTRA_ARGS=--cni-conf-dir=x"), older)) == 1


@pytest.mark.parametrize(
    ("text", "settings", "part"),
    [
        ("--max-pods=250", {}, "--max-pods, which wins over cluster.kubelet.maxPods"),
        ("--node-ip=10.1.0.5", {}, "--node-ip, which wins over the host's address in the inv"),
        ("--resolv-conf=/etc/resolv.conf", {}, "wins over cluster.kubelet.resolvConf"),
        ("--serialize-image-pulls=true", {"serializeImagePulls": False}, "serializeImagePulls"),
        ("--v=4", {}, ""),
    ],
)
def test_flags_that_win_over_settings_are_told(
    text: str, settings: dict[str, Any], part: str
) -> None:
    parsed = parse_settings({"cluster": {"kubelet": settings}})
    state = replace(CLEAN, boot=flags(f"KUBELET_EXTRA_ARGS={text}"))
    warnings = kubelet_problems.warnings([WORKER], {WORKER.host: state}, parsed)
    assert len(warnings) == bool(part)
    assert all(part in item and "[gpu1] /etc/default/kubelet:3" in item for item in warnings)


def test_what_a_run_overrides_is_told_and_who_reboots() -> None:
    state = replace(
        CLEAN,
        boot=BootState(
            sysctls=(line("/etc/sysctl.d/99-sysctl.conf", "net.ipv4.ip_forward=0"),),
            hosts_owner="# Managed by Puppet",
            reboots_by=("unattended-upgrades", "dnf-automatic"),
        ),
    )
    owner, sysctl, apt, dnf = boot_problems.warnings([WORKER], {WORKER.host: state})
    assert "[gpu1] /etc/sysctl.d/99-sysctl.conf:3 sets `net.ipv4.ip_forward=0`" in sysctl
    assert 'Unattended-Upgrade::Automatic-Reboot "false"' in apt
    assert "reboot = never in /etc/dnf/automatic.conf" in dnf
    assert "/etc/hosts says `# Managed by Puppet`" in owner
    assert all("remedy: " in item for item in (owner, sysctl, apt, dnf))
    assert boot_problems.warnings([WORKER], {WORKER.host: CLEAN}) == []
    assert boot_problems.warnings([WORKER], {}) == []
