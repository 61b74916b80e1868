"""The real software that the lab runs, as recipes: what is built, from which module, and how.

Versions stand in lab/build/recipes/go.mod. Everything is upstream's source; what was left out or
exchanged to build it is said here, at its recipe.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.build import software_kubernetes, software_metrics, software_monitoring
from lab.build.golang import go_recipe, module_dir, module_version, run_go
from lab.build.recipe import BuildContext, Recipe
from lab.build.toolchain import RECIPES
from lab.state import LabError

CONTAINERD = "github.com/containerd/containerd/v2"
CNI = "github.com/containernetworking/plugins"
CRI_TOOLS = "sigs.k8s.io/cri-tools"
ETCD = "go.etcd.io/etcd"
FLANNEL = "github.com/flannel-io/flannel"
HELM = "helm.sh/helm/v4"
NFD = "sigs.k8s.io/node-feature-discovery"
NVIDIA = "github.com/NVIDIA"
LOCAL_PATH = "github.com/rancher/local-path-provisioner"
# not in the common go.mod: a change of that one builds every program anew
ETCDUTL_MODULE = Path(__file__).parent / "etcdutl"


def recipes() -> list[Recipe]:
    """All recipes of this file, in the order they are best built in: the longest first."""
    return [
        software_kubernetes.kubernetes("kubernetes", kubernetes_version()),
        *_containers(),
        *_cluster_parts(),
        *_nvidia(),
        *software_monitoring.recipes(),
        *software_metrics.recipes(),
        _helm(),
        _pause(),
    ]


def kubernetes_version() -> str:
    """The version of the lab's clusters, as in `v1.37.2`."""
    return module_version(software_kubernetes.KUBERNETES)


def _containers() -> list[Recipe]:
    containerd = module_version(CONTAINERD)
    names = ("containerd", "containerd-shim-runc-v2", "ctr")
    version = {f"{CONTAINERD}/version.Version": containerd}
    plugins = {
        "main": ("bridge", "loopback", "ptp"),
        "ipam": ("host-local",),
        "meta": ("bandwidth", "firewall", "portmap", "tuning"),
    }
    build = f"{CNI}/pkg/utils/buildversion.BuildVersion"
    cri_version = {f"{CRI_TOOLS}/pkg/version.Version": module_version(CRI_TOOLS)}
    return [
        go_recipe(
            "containerd",
            {name: f"{CONTAINERD}/cmd/{name}" for name in names},
            variables=version,
            seconds=60,
        ),
        go_recipe(
            "cni-plugins",
            {name: f"{CNI}/plugins/{kind}/{name}" for kind in plugins for name in plugins[kind]},
            variables={build: module_version(CNI)},
            seconds=15,
        ),
        go_recipe(
            "crictl",
            {"crictl": f"{CRI_TOOLS}/cmd/crictl"},
            variables=cri_version,
            seconds=15,
        ),
    ]


def _cluster_parts() -> list[Recipe]:
    return [
        go_recipe(
            "etcd",
            {"etcd": f"{ETCD}/server/v3", "etcdctl": f"{ETCD}/etcdctl/v3"},
            seconds=20,
        ),
        go_recipe(
            "etcdutl",
            {"etcdutl": f"{ETCD}/etcdutl/v3"},
            module=ETCDUTL_MODULE,
            seconds=60,
        ),
        go_recipe("coredns", {"coredns": "./coredns"}, seconds=30),
        go_recipe(
            "flannel",
            {
                "flanneld": "./flanneld",
                "install-conf": f"{FLANNEL}/cmd/install_conf",
                "flannel-cni": "./flannel-cni",
            },
            variables={f"{FLANNEL}/pkg/version.Version": module_version(FLANNEL)},
            prepare=_flanneld,
            inputs=_NO_BACKENDS,
            seconds=25,
        ),
        go_recipe(
            "node-feature-discovery",
            {name: f"{NFD}/cmd/{name}" for name in ("nfd-master", "nfd-worker", "nfd-gc")},
            variables={
                f"{NFD}/pkg/version.version": module_version(NFD),
                # where its containers see the host's /sys and the like, as in upstream's image
                f"{NFD}/pkg/utils/hostpath.pathPrefix": "/host-",
            },
            seconds=20,
        ),
        go_recipe("local-path-provisioner", {"local-path-provisioner": LOCAL_PATH}, seconds=10),
    ]


# Backends that are left out of flanneld: one imports an SDK that no module proxy has, the other
# is C. The lab uses vxlan.
_NO_BACKENDS = ("tencentvpc", "udp")


def _flanneld(build: BuildContext) -> None:
    """Write flanneld's own main without the imports of two backends; the rest is its module's."""
    lines = (module_dir(FLANNEL) / "main.go").read_text().splitlines(keepends=True)
    dropped = tuple(f'backend/{name}"\n' for name in _NO_BACKENDS)
    (build.work / "flanneld").mkdir()
    retained_lines = "".join(line for line in lines if not line.endswith(dropped))
    (build.work / "flanneld/main.go").write_text(retained_lines)


def _nvidia() -> list[Recipe]:
    toolkit = f"{NVIDIA}/nvidia-container-toolkit"
    plugin = f"{NVIDIA}/k8s-device-plugin"
    names = (
        *("nvidia-ctk", "nvidia-cdi-hook"),
        *("nvidia-container-runtime", "nvidia-container-runtime-hook"),
    )
    version = module_version(toolkit).removeprefix("v")
    return [
        go_recipe(
            "nvidia-container-toolkit",
            {name: f"{toolkit}/cmd/{name}" for name in names},
            variables={f"{toolkit}/internal/info.version": version},
            cgo=True,  # go-nvml
            seconds=45,
        ),
        # the versions that its own go.mod asks for: it does not compile with newer ones
        go_recipe(
            "nvidia-device-plugin",
            {
                name: f"{plugin}/cmd/{name}"
                for name in ("nvidia-device-plugin", "gpu-feature-discovery", "config-manager")
            },
            variables={f"{plugin}/internal/info.version": module_version(plugin)},
            replace={
                f"{NVIDIA}/go-nvml": "v0.13.0-1.0.20260212130905-92cf8c963449",
                f"{NVIDIA}/go-nvlib": "v0.9.1-0.20251202135446-d0f42ba016dd",
                toolkit: _PLUGIN_TOOLKIT,
            },
            prepare=_host_driver_files,
            inputs=_DRIVER_FILES,
            cgo=True,
            seconds=40,
        ),
    ]


# The toolkit's version that the device plugin is made with.
_PLUGIN_TOOLKIT = "v1.19.0"
# What of /proc/driver the device plugin reads of MIG instances, and where the lab's has it: the
# kernel shows a real driver's files in each container's /proc, but the simulated driver's lie in
# the host's alone, which is a part of the host's root that the container has.
_DRIVER_FILES = ('"/proc/driver/nvidia', '"/host/proc/driver/nvidia')


def _host_driver_files(build: BuildContext) -> None:
    """Make the device plugin from sources that look for the driver's files in the host's root."""
    read_by = {
        ("k8s-device-plugin", ""): ("internal/mig/mig-dp.go", "internal/rm/nvml_devices.go"),
        ("nvidia-container-toolkit", _PLUGIN_TOOLKIT): ("internal/nvcaps/nvcaps.go",),
    }
    for (name, version), files in read_by.items():
        copy = build.work / name
        shutil.copytree(module_dir(f"{NVIDIA}/{name}", version), copy)
        for file in files:
            _replace_in(copy / file, *_DRIVER_FILES)
        run_go(build, "mod", "edit", f"-replace={NVIDIA}/{name}=./{name}")


def _replace_in(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if old not in text:
        raise LabError(f"{file} does not say {old}: see what upstream has in its place")
    file.chmod(0o644)
    file.write_text(text.replace(old, new))


def _helm() -> Recipe:
    return go_recipe(
        "helm",
        {"helm": f"{HELM}/cmd/helm"},
        variables={f"{HELM}/internal/version.version": module_version(HELM)},
        seconds=30,
    )


def _pause() -> Recipe:
    source = RECIPES / "pause" / "pause.c"
    command = ["gcc", "-Os", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-o"]

    def make(build: BuildContext) -> None:
        build.run([*command, str(build.out / "pause"), str(source)])

    return Recipe("pause", {"pause": "pause"}, (source, *command), make, seconds=1)
