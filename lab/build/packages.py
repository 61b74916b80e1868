"""The packages of the mirror's vendor repositories: containerd, Kubernetes, NVIDIA's toolkit.

Names, versions, contents and dependencies are upstream's; the programs are built by
`lab.build.programs`. Sources: kubernetes/release (cmd/krel/templates/latest),
docker/containerd-packaging, NVIDIA/nvidia-container-toolkit (packaging/debian, deployments).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from lab.build.debs import SIMULATED, Deb
from lab.build.software import kubernetes_version
from lab.build.software_kubernetes import EARLIER
from lab.debian_releases import DebianRelease

Files = dict[str, Path | bytes | str]

CONTAINERD = "2.4.2"
CNI = "1.9.1"
CRI_TOOLS = "1.37.0"
TOOLKIT = "1.20.2-1"

UNITS = "/usr/lib/systemd/system"
PACKAGING = Path(__file__).parent / "packaging"


def unit_scripts(*units: str) -> dict[str, str]:
    """Maintainer scripts that enable and start units, as debhelper's do; nothing in a chroot.

    A unit that does not start fails no installation there either.
    """
    names = " ".join(units)
    return {
        "postinst": f"""#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable --quiet {names}
    systemctl restart {names} || echo "not started: {names}" >&2
fi
""",
        "prerm": f"""#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --quiet --now {names}
fi
""",
    }


def containerd(builds: Mapping[str, Path], release: DebianRelease) -> Deb:
    """containerd.io as in Docker's repository, which brings runc along."""
    programs = ("containerd", "containerd-shim-runc-v2", "ctr", "runc")
    files: Files = {f"/usr/bin/{name}": builds[name] for name in programs}
    files |= {
        "/etc/containerd/config.toml": PACKAGING / "containerd.toml",
        f"{UNITS}/containerd.service": PACKAGING / "containerd.service",
    }
    return Deb(
        name="containerd.io",
        version=f"{CONTAINERD}-{release.docker_revision}",
        depends="libc6 (>= 2.34), libseccomp2 (>= 2.5.0)",
        description="An open and reliable container runtime",
        files=files,
        modes={f"/usr/bin/{name}": 0o755 for name in programs},
        scripts=unit_scripts("containerd.service"),
        conffiles=("/etc/containerd/config.toml",),
        provides="containerd, runc",
        conflicts="containerd, runc",
        replaces="containerd, runc",
        section="devel",
    )


def minor() -> str:
    """The minor release of Kubernetes that the lab's clusters have, as in `1.36`."""
    return kubernetes_version().removeprefix("v").rpartition(".")[0]


def kubernetes(builds: Mapping[str, Path], of_minor: str) -> list[Deb]:
    """The packages in pkgs.k8s.io's repository of a minor release, of what was built.

    Those beside Kubernetes' own are the same in each; upstream's differ in version.
    """
    releases = {kubernetes_version().removeprefix("v"): ""}
    releases |= {
        release.version: release.program("") for release in EARLIER if release.is_built(builds)
    }
    matching = [version for version in releases if version.startswith(f"{of_minor}.")]
    return [
        *(deb for version in matching for deb in _kubernetes(builds, version, releases[version])),
        Deb(
            name="kubernetes-cni",
            version=f"{CNI}-1.1",
            description="Binaries required to provision kubernetes container networking",
            files={f"/opt/cni/bin/{name}": builds[name] for name in cni_plugins(builds)},
            section="net",
        ),
        Deb(
            name="cri-tools",
            version=f"{CRI_TOOLS}-1.1",
            description="Command-line utility for interacting with a container runtime",
            files={"/usr/bin/crictl": builds["crictl"]},
        ),
    ]


_RELOAD_UNITS = """#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
"""


def _kubernetes(builds: Mapping[str, Path], release: str, suffix: str) -> list[Deb]:
    """The packages of a release; none enables the kubelet's unit. + suffix: of programs' names"""
    version = f"{release}-1.1"
    return [
        Deb(
            name="kubelet",
            version=version,
            depends="kubernetes-cni (>= 1.2.0), mount, util-linux",
            recommends="iptables (>= 1.8.4)",
            description="Node agent for Kubernetes clusters",
            files={
                "/usr/bin/kubelet": builds[f"kubelet{suffix}"],
                f"{UNITS}/kubelet.service": PACKAGING / "kubelet.service",
                "/etc/default/kubelet": "KUBELET_EXTRA_ARGS=\n",
                "/var/lib/kubelet/.kubelet-keep": "",
                "/etc/kubernetes/manifests/.kubelet-keep": "",
            },
            scripts={"postinst": _RELOAD_UNITS},
            conffiles=("/etc/default/kubelet",),
            section="net",
        ),
        Deb(
            name="kubeadm",
            version=version,
            description="Command-line utility for administering a Kubernetes cluster",
            files={
                "/usr/bin/kubeadm": builds[f"kubeadm{suffix}"],
                f"{UNITS}/kubelet.service.d/10-kubeadm.conf": PACKAGING / "10-kubeadm.conf",
            },
            scripts={"postinst": _RELOAD_UNITS},
        ),
        Deb(
            name="kubectl",
            version=version,
            description="Command-line utility for interacting with a Kubernetes cluster",
            files={"/usr/bin/kubectl": builds[f"kubectl{suffix}"]},
        ),
    ]


CNI_PLUGINS = (
    *("bandwidth", "bridge", "firewall", "host-local"),
    *("loopback", "portmap", "ptp", "tuning"),
)


def cni_plugins(builds: Mapping[str, Path]) -> list[str]:
    """The CNI plugins that were built. `KeyError` when one that a cluster needs is missing."""
    for needed in ("bridge", "host-local", "loopback", "portmap"):
        builds[needed]
    return [name for name in CNI_PLUGINS if name in builds]


def toolkit(builds: Mapping[str, Path], module: Path) -> list[Deb]:
    """NVIDIA's container toolkit; `module` is the folder of its Go module (units, udev rules).

    libnvidia-container is a C library that no Go module holds: its packages are empty here.
    """
    return [
        _toolkit_base(builds, module / "deployments"),
        Deb(
            name="nvidia-container-toolkit",
            version=TOOLKIT,
            depends=f"nvidia-container-toolkit-base (= {TOOLKIT}), "
            f"libnvidia-container-tools (= {TOOLKIT}), libnvidia-container-tools (<< 2.0.0)",
            description="NVIDIA Container toolkit\n"
            "Provides tools and utilities to enable GPU support in containers.",
            files={
                "/usr/bin/nvidia-container-runtime-hook": builds["nvidia-container-runtime-hook"],
                "/usr/bin/nvidia-container-toolkit": "-> nvidia-container-runtime-hook",
            },
            section="utils",
        ),
        _simulated("libnvidia-container-tools", f"libnvidia-container1 (= {TOOLKIT})"),
        _simulated("libnvidia-container1", ""),
    ]


def _toolkit_base(builds: Mapping[str, Path], deployments: Path) -> Deb:
    environment = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
    order = "nvidia-cdi-refresh.service.d/10-container-engines.conf"
    files: Files = {
        f"{UNITS}/nvidia-cdi-refresh.service": deployments / "systemd/nvidia-cdi-refresh.service",
        f"{UNITS}/nvidia-cdi-refresh.path": deployments / "systemd/nvidia-cdi-refresh.path",
        f"{UNITS}/{order}": deployments / "systemd/10-container-engines.conf",
        environment: deployments / "systemd/nvidia-cdi-refresh.env",
        "/usr/lib/udev/rules.d/99-nvidia-cdi-refresh.rules": deployments
        / "udev/99-nvidia-cdi-refresh.rules",
    }
    modes = dict.fromkeys(files, 0o644)
    for name in ("nvidia-container-runtime", "nvidia-ctk", "nvidia-cdi-hook"):
        files[f"/usr/bin/{name}"] = builds[name]
    scripts = unit_scripts("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
    configure = (
        "/usr/bin/nvidia-ctk --quiet config "
        "--config-file=/etc/nvidia-container-runtime/config.toml --in-place\n"
    )
    scripts["postinst"] = scripts["postinst"].replace("set -e\n", f"set -e\n{configure}", 1)
    return Deb(
        name="nvidia-container-toolkit-base",
        version=TOOLKIT,
        description="NVIDIA Container Toolkit Base\n"
        "Provides the NVIDIA Container Runtime and NVIDIA Container Toolkit CLI.",
        files=files,
        modes=modes,
        scripts=scripts,
        conffiles=(environment,),
        section="utils",
    )


def _simulated(name: str, depends: str) -> Deb:
    return Deb(
        name=name,
        version=TOOLKIT,
        depends=depends,
        description=f"NVIDIA container runtime library ({SIMULATED}: empty)",
        section="utils",
    )


def kernel_headers() -> list[Deb]:
    """Stand-ins for the headers of the running kernel: nothing is compiled against them here."""
    release = os.uname().release
    text = f"Header files for Linux {release} ({SIMULATED}: empty)"
    exact = Deb(
        name=f"linux-headers-{release}",
        version="1.0-1",
        description=text,
        files={f"/usr/src/linux-headers-{release}/SIMULATED": f"{text}\n"},
        section="kernel",
    )
    meta = Deb(
        name="linux-headers-amd64",
        version="1.0-1",
        depends=f"linux-headers-{release}",
        description=f"Header files for Linux ({SIMULATED}: empty)",
        section="kernel",
    )
    return [exact, meta]
