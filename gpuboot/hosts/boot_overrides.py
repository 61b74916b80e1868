"""What files of a member of the cluster do at its next boot to what a run has set."""

from collections.abc import Iterator

from gpuboot.hosts import module_loading, sysctls
from gpuboot.hosts.node_state import NodeState
from gpuboot.plan import Decision

# modules of /etc/modules-load.d/gpuboot.conf
MODULES = ("overlay", "br_netfilter")
# settings of templates/containerd/config.toml.j2 that drop-ins replace, by the end of their names
_CONTAINERD_SETTINGS = {
    "containerd.runtimes.runc.options.SystemdCgroup": "true",
    "registry.config_path": "/etc/containerd/certs.d",
    "runtime.disable_hugetlb_controller": "true",
    "containerd.default_runtime_name": "runc",
    "containerd.runtimes.nvidia.options.BinaryName": "/usr/bin/nvidia-container-runtime",
    # defaults that gpuboot relies on
    "root": "/var/lib/containerd",
    "state": "/run/containerd",
    "images.snapshotter": "overlayfs",
    "disabled_plugins": "[]",
    "runtime.enable_cdi": "true",
    "cni.conf_dir": "/etc/cni/net.d",
}


def decisions(state: NodeState) -> list[Decision]:
    """The overrides with what to do; none on a host that is no member yet: preflight refuses it."""
    if "/etc/kubernetes/kubelet.conf" not in state.kubeconfigs:
        return []
    return [*_sysctls(state), *_modules(state), *_containerd(state)]


def _sysctls(state: NodeState) -> Iterator[Decision]:
    for key, line in sysctls.overriding(state.boot.sysctls):
        yield Decision(
            what=f"{line.place} sets `{line.text}` at each boot, after gpuboot's {sysctls.FILE}; "
            f"expected {key} = {sysctls.EXPECTED[key]}",
            why=f"a file of the administrator's; change that line to `{key} = "
            f"{sysctls.EXPECTED[key]}`, or take it out, then `sysctl --system`",
        )


def _modules(state: NodeState) -> Iterator[Decision]:
    for name, place in module_loading.kept_out(state.module_loading, MODULES):
        yield Decision(
            what=f"the kernel module {name} is not loaded at the next boot (by {place})",
            why="Kubernetes' network and containers need it; take that out",
        )


def _containerd(state: NodeState) -> Iterator[Decision]:
    for line in state.boot.containerd_settings:
        name, _, value = (part.strip(" \"'") for part in line.text.partition("="))
        expected = next(
            (
                text
                for end, text in _CONTAINERD_SETTINGS.items()
                # one without a table stands at the top of the file
                if name == end or ("." in end and name.endswith(f".{end}"))
            ),
            value,
        )
        if value != expected:
            yield Decision(
                what=f"{line.place} sets {name} = {value}, expected {expected}",
                why="a file of the administrator's, which counts more than gpuboot's "
                "/etc/containerd/config.toml; take that line out, then `systemctl restart "
                "containerd` (containers go on)",
            )
    for line in state.boot.containerd:
        yield Decision(
            what=f"{line.place} starts containerd by a command of its own (`{line.text}`)",
            why=f"a file of the administrator's; take it out of {line.file}, then `systemctl "
            "daemon-reload`; containerd's next restart is then as its package has it",
        )
