"""Causes that programs name themselves: what they really print, beside what looks like it."""

from __future__ import annotations

from typing import Any

from gpuboot.cluster.pods import Container, Termination
from gpuboot.diagnose.facts import Facts
from gpuboot.verify.gpu_state import GpuState
from tests.unit.diagnose_site import (
    NOW,
    Case,
    at,
    cluster,
    event,
    gpu_host,
    nodes_with,
    pod,
    site,
    state,
    stuck,
)

RUNC = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc "
    "create failed: unable to start container process: error during container init: "
)
RESTARTS = ("state\tkubelet activating auto-restart exit-code 1 loaded",)
OFF = {"driver_loaded": "", "driver_module": "595.91.07"}


def kubelet(error: str) -> Facts:
    """A kubelet that starts again and again, and says why."""
    line = f'E1126 09:00:00.000001 1 run.go:72] "command failed" err="{error}"'
    log = f"log\tkubelet {at(10, f'gpu1 kubelet[1]: {line}')}"
    return site(gpu_host(*RESTARTS, log, without=["state\tkubelet"]))


def crashes(text: str, name: str = "train-0", space: str = "ml") -> Facts:
    """A pod whose container ended with this line."""
    item = pod(
        name, space, ready=False, containers=(_container(Termination("Error", 1, "", NOW - 30)),)
    )
    return site(at=cluster(pods=(item,), logs={f"{item.key}/main/previous": (at(30, text),)}))


def not_started(text: str) -> Facts:
    """A pod whose container runc did not start."""
    end = Termination("StartError", 128, text, NOW - 30)
    return site(at=cluster(pods=(pod("train-0", ready=False, containers=(_container(end),)),)))


def waits(reason: str, text: str) -> Facts:
    return site(at=cluster(pods=(pod("train-0", **stuck(reason, text)),)))


def failing_event(reason: str, text: str) -> Facts:
    fields: dict[str, Any] = stuck("ContainerCreating")
    return site(
        at=cluster(pods=(pod("train-0", **fields),), events=(event("train-0", reason, text),))
    )


def kernel(text: str) -> Facts:
    """A host whose driver could not be loaded, and what the kernel says."""
    error = GpuState(smi_error="NVIDIA-SMI has failed")
    return site(gpu_host(f"kernel\t[12.2] NVRM: {text}", gpu=error, state=state(**OFF)))


def unready(text: str) -> Facts:
    return site(at=cluster(nodes=nodes_with(ready=False, message=text)))


def _container(end: Termination) -> Container:
    return Container("main", False, 5, "waiting", "CrashLoopBackOff", "", end)


NO_ADDRESS = (
    'plugin type="flannel" failed (add): failed to delegate add: failed to allocate for range 0: '
    "no IP addresses available in range set: 10.244.1.1-10.244.1.254"
)
NO_SUBNET = "loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file or directory"
ROWS: tuple[tuple[str, Facts, Facts, str], ...] = (
    (
        "kubelet-swap",
        kubelet("failed to run Kubelet: running with swap on is not supported, please disable"),
        kubelet("failed to parse kubelet flag: unknown flag: --fail-swap"),
        "swap on",
    ),
    (
        "kubelet-cgroup-v1",
        kubelet("kubelet is configured to not run on a host using cgroup v1"),
        kubelet("failed to run Kubelet: misconfiguration: kubelet cgroup driver is not equal"),
        "cgroup v1",
    ),
    (
        "containerd-without-cri",
        kubelet("validate CRI v1 runtime API: unknown service runtime.v1.RuntimeService"),
        kubelet("validate CRI v1 runtime API: connect: no such file or directory"),
        "unknown service",
    ),
    (
        "container-runtime-hangs",
        unready("PLEG is not healthy: pleg was last seen active 3m12s ago; threshold is 3m0s"),
        unready(
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
        ),
        "PLEG",
    ),
    (
        "inotify-limit",
        kubelet("failed to run Kubelet: unable to create inotify: too many open files"),
        crashes("accept tcp 0.0.0.0:80: accept4: too many open files"),
        "inotify",
    ),
    (
        "pod-addresses-used",
        failing_event("FailedCreatePodSandBox", NO_ADDRESS),
        failing_event("FailedCreatePodSandBox", NO_SUBNET),
        "no IP addresses",
    ),
    (
        "pod-network-unassigned",
        crashes('failed to acquire lease: node "gpu1" pod cidr not assigned', "kube-flannel-ds-x"),
        crashes("failed to acquire lease: context deadline exceeded", "kube-flannel-ds-x"),
        "not assigned",
    ),
    (
        "flannel-interface",
        crashes("Failed to find any valid interface to use: failed to get default interface"),
        crashes("Could not find interface name in the list"),
        "valid interface",
    ),
    (
        "bridge-filter-missing",
        crashes(
            "Failed to check br_netfilter: stat /proc/sys/net/bridge/bridge-nf-call-iptables: no "
            "such file or directory"
        ),
        crashes("stat /proc/sys/net/ipv4: no such file or directory"),
        "br_netfilter",
    ),
    (
        "exec-format",
        crashes("exec /usr/bin/app: exec format error"),
        crashes("exec /usr/bin/app: permission denied"),
        "exec format error",
    ),
    (
        "image-never-pulled",
        waits(
            "ErrImageNeverPull", 'Container image "x:1" is not present with pull policy of Never'
        ),
        waits("ErrImagePull", "x:1: not found"),
        "Never",
    ),
    (
        "config-missing",
        waits("CreateContainerConfigError", 'secret "token" not found'),
        waits(
            "CreateContainerConfigError", "container has runAsNonRoot and image will run as root"
        ),
        "token",
    ),
    (
        "config-missing",
        failing_event(
            "FailedMount", 'MountVolume.SetUp failed for volume "cfg" : configmap "cfg" not found'
        ),
        failing_event("FailedMount", "MountVolume.SetUp failed: mount failed: exit status 32"),
        'configmap "cfg"',
    ),
    (
        "driver-too-old",
        not_started(
            f"{RUNC}error running prestart hook #0: nvidia-container-cli: requirement error: "
            "unsatisfied condition: cuda>=13.1, please update your driver"
        ),
        not_started(f"{RUNC}nvidia-container-cli: initialization error: driver not loaded"),
        "cuda>=13.1",
    ),
    (
        "cdi-stale",
        waits("CreateContainerError", "CDI device injection failed: unresolvable CDI devices x"),
        waits("CreateContainerError", "context deadline exceeded"),
        "unresolvable CDI devices",
    ),
    (
        "cdi-stale",
        not_started(
            f'{RUNC}error mounting "/usr/lib/x86_64-linux-gnu/libcuda.so.590.10" to rootfs: '
            "no such file or directory"
        ),
        not_started(f'{RUNC}error mounting "/srv/data" to rootfs: no such file or directory'),
        "libcuda.so.590.10",
    ),
    (
        "config-refused",
        crashes(
            "error starting plugins: unable to load config: unable to finalize config: error "
            "parsing config file",
            "nvidia-device-plugin-daemonset-x",
            "gpu-operator",
        ),
        crashes(
            "error starting plugins: failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND",
            "nvidia-device-plugin-daemonset-x",
            "gpu-operator",
        ),
        "unable to load config",
    ),
    (
        "device-plugin-socket",
        crashes(
            "Could not register device plugin: dial unix /var/lib/kubelet/device-plugins/"
            "kubelet.sock: connect: permission denied",
            "nvidia-device-plugin-daemonset-x",
        ),
        crashes("dial unix /run/x.sock: connect: permission denied"),
        "permission denied",
    ),
    (
        "storage-corrupt",
        crashes(
            'msg="Fatal error" err="opening storage failed: repair corrupted WAL: cannot handle '
            'error: corruption in segment /prometheus/wal/00000012 at 3: unexpected checksum"'
        ),
        crashes(
            'msg="Fatal error" err="opening storage failed: lock DB directory: resource '
            'temporarily unavailable"'
        ),
        "00000012",
    ),
    (
        "volume-full",
        crashes('err="opening storage failed: open /prometheus/wal/12: no space left on device"'),
        waits("ErrImagePull", "write /var/lib/containerd/x: no space left on device"),
        "/prometheus/wal/12",
    ),
    (
        "leader-lost",
        crashes('{"level":"error","msg":"problem running manager","error":"leader election lost"}'),
        crashes('{"level":"info","msg":"attempting to acquire leader lease"}'),
        "leader election lost",
    ),
    (
        "gpu-unsupported",
        kernel("installed in this system is not supported by open"),
        kernel("None of the NVIDIA devices were initialized."),
        "not supported by open",
    ),
    (
        "gpu-bar",
        kernel("BAR1 is 0M @ 0x0 (PCI:0000:10:00.0)"),
        kernel("No NVIDIA GPU found."),
        "BAR1 is 0M",
    ),
)
CASES = tuple(Case(*row) for row in ROWS)
