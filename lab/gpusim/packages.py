"""The simulated driver as Debian packages, named and cut as in NVIDIA's CUDA repository (R590+).

Installing them leaves a machine as a driver install does: libraries and tools, a "module" built
for the running kernel that is not loaded yet, nouveau kept out, and units. `modprobe nvidia` then
loads the simulated driver. Every package says in its description that it is simulated.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from lab.build.debs import SIMULATED, Deb

DRIVER_DIR = Path(__file__).parent / "driver"
DCGM_DIR = Path(__file__).parent / "dcgm"
DCGMI = Path(__file__).parent / "deep/dcgmi"
DCGM_VERSIONS = ("4.6.0", "4.6.1")  # an earlier one, to upgrade from
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
UNITS = "/usr/lib/systemd/system"
REVISION = "1"

# Packages that belong to one driver version: what a pinning package holds to it.
PINNED = (
    "cuda-drivers",
    "libnvidia-compute",
    "nvidia-dkms",
    "nvidia-dkms-open",
    "nvidia-driver-open",
    "nvidia-fabricmanager",
    "nvidia-open",
    "nvidia-persistenced",
)


def cuda_keyring(key: bytes, url: str, distribution: str) -> Deb:
    """The package that makes a machine trust and use the CUDA repository.

    `key` is the repository's ASCII-armored public key, `url` the flat repository's address,
    `distribution` its folder, as in "debian12".
    """
    binary = subprocess.run(
        ["gpg", "--batch", "--dearmor"], input=key, check=True, capture_output=True
    ).stdout
    keyring = "/usr/share/keyrings/cuda-archive-keyring.gpg"
    source = f"deb [signed-by={keyring}] {url.rstrip('/')}/ /\n"
    pin = "Package: *\nPin: release l=NVIDIA CUDA\nPin-Priority: 600\n"
    return Deb(
        name="cuda-keyring",
        version="1.1-1",
        architecture="all",
        description=f"GPG keyring for the CUDA repository ({SIMULATED})",
        files={
            keyring: binary,
            f"/etc/apt/sources.list.d/cuda-{distribution}-x86_64.list": source,
            "/etc/apt/preferences.d/cuda-repository-pin-600": pin,
        },
    )


def driver_debs(version: str, bins: Mapping[str, Path]) -> list[Deb]:
    """Every package of the simulated driver `version` ("595.91.07").

    `bins` maps the names that `builds.build` gives its outputs to their paths. Raises `KeyError`
    when one of this version is missing.
    """
    return [
        _pinning(version.split(".")[0], version),
        _pinning(version, version),
        _module("nvidia-dkms-open", "nvidia-dkms", version, bins[f"nvidia-open.ko.{version}"]),
        _module("nvidia-dkms", "nvidia-dkms-open", version, bins[f"nvidia.ko.{version}"]),
        _libraries(version, bins),
        _persistenced(version, bins["nvidia-persistenced"]),
        _fabric_manager(version),
        _meta("nvidia-open", "nvidia-dkms-open", version, conflicts="cuda-drivers"),
        _meta("nvidia-driver-open", "nvidia-dkms-open", version),
        _meta("cuda-drivers", "nvidia-dkms", version, conflicts="nvidia-open"),
    ]


def _full(version: str) -> str:
    return f"{version}-{REVISION}"


def _pinning(pinned: str, version: str) -> Deb:
    """Holds driver packages to a branch ("595") or a full version, by apt's preferences."""
    pattern = f"{pinned}.*" if pinned != version else f"{pinned}-*"
    text = (
        f"Explanation: {SIMULATED}\n"
        f"Package: {' '.join(PINNED)}\nPin: version {pattern}\nPin-Priority: 1001\n"
    )
    return Deb(
        name=f"nvidia-driver-pinning-{pinned}",
        version=f"{pinned}-{REVISION}",
        architecture="all",
        description=f"Pins NVIDIA driver packages to {pinned} ({SIMULATED})",
        files={"/etc/apt/preferences.d/nvidia-driver-pinning": text},
        provides="nvidia-driver-pinning",
        conflicts="nvidia-driver-pinning",
        replaces="nvidia-driver-pinning",
    )


def _meta(name: str, module: str, version: str, conflicts: str = "") -> Deb:
    parts = (module, "libnvidia-compute", "nvidia-persistenced")
    return Deb(
        name=name,
        version=_full(version),
        depends=", ".join(f"{part} (= {_full(version)})" for part in parts),
        description=f"NVIDIA driver metapackage ({SIMULATED})",
        conflicts=conflicts,
    )


def _module(name: str, companion: str, version: str, module: Path) -> Deb:
    source = f"/usr/src/nvidia-{version}"
    postinst = f"""#!/bin/sh
set -e
if [ "$1" = configure ]; then /usr/lib/gpu-sim/dkms-build {version}; fi
"""
    prerm = f"""#!/bin/sh
set -e
for module in /lib/modules/*/updates/dkms/nvidia.ko; do
    if [ "$(modinfo -F version "$module" 2> /dev/null)" = {version} ]; then
        echo "Deleting module nvidia-{version} from the DKMS tree. (simulated)"
        rm -f "$module"
        depmod -a "$(echo "$module" | cut -d / -f 4)"
    fi
done
"""
    scripts = ("load", "unload", "dkms-build")
    dkms_conf = f'# {SIMULATED}\nPACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n'
    return Deb(
        name=name,
        version=_full(version),
        depends="kmod, util-linux",
        description=f"NVIDIA kernel module, built for the running kernel ({SIMULATED})",
        files={
            f"{source}/dkms.conf": dkms_conf,
            f"{source}/nvidia.ko": module,
            "/usr/lib/modprobe.d/gpu-sim.conf": DRIVER_DIR / "modprobe.conf",
            "/etc/modprobe.d/nvidia-blacklists-nouveau.conf": (
                "# The NVIDIA driver cannot be loaded beside nouveau.\nblacklist nouveau\n"
            ),
            **{f"/usr/lib/gpu-sim/{script}": DRIVER_DIR / script for script in scripts},
        },
        scripts={"postinst": postinst, "prerm": prerm},
        conflicts=f"{companion}, nvidia-dkms-any",
        provides=f"nvidia-dkms-any, {_debian_module_name(name)}",
        replaces=companion,
        section="kernel",
    )


def _debian_module_name(name: str) -> str:
    """What Debian-like releases of the same repository call the module package."""
    return "nvidia-kernel-open-dkms" if name == "nvidia-dkms-open" else "nvidia-kernel-dkms"


def _libraries(version: str, bins: Mapping[str, Path]) -> Deb:
    files: dict[str, Path | bytes | str] = {"/usr/bin/nvidia-smi": bins[f"nvidia-smi.{version}"]}
    for library in ("libnvidia-ml", "libcuda"):
        files[f"{LIBRARIES}/{library}.so.{version}"] = bins[f"{library}.so.{version}"]
        files[f"{LIBRARIES}/{library}.so.1"] = f"-> {library}.so.{version}"
        files[f"{LIBRARIES}/{library}.so"] = f"-> {library}.so.1"
    return Deb(
        name="libnvidia-compute",
        version=_full(version),
        depends="libc6 (>= 2.34)",
        description=f"NVIDIA libraries and nvidia-smi for computing ({SIMULATED})",
        files=files,
        modes={path: 0o644 for path in files if ".so." in path},
        scripts={"triggers": "activate-noawait ldconfig\n"},
        provides="libcuda1, libnvidia-ml1, nvidia-smi, nvidia-driver-cuda, nvidia-utils",
        section="libs",
    )


def _service_scripts(unit: str, start_when: str) -> dict[str, str]:
    """Maintainer scripts that enable a unit, start it when the test succeeds, and undo both."""
    return {
        "postinst": f"""#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable --quiet {unit}
    if {start_when}; then
        systemctl restart {unit} || echo "{unit} did not start; see its journal" >&2
    fi
fi
""",
        "prerm": f"""#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --quiet --now {unit}; fi
""",
    }


def _persistenced(version: str, daemon: Path) -> Deb:
    unit = "nvidia-persistenced.service"
    return Deb(
        name="nvidia-persistenced",
        version=_full(version),
        depends="libc6 (>= 2.34)",
        description=f"Daemon that keeps NVIDIA GPUs initialized ({SIMULATED})",
        files={
            "/usr/bin/nvidia-persistenced": daemon,
            f"{UNITS}/{unit}": DRIVER_DIR / unit,
        },
        scripts=_service_scripts(unit, "[ -e /dev/nvidiactl ]"),
    )


def _fabric_manager(version: str) -> Deb:
    """The fabric manager's package: as upstream's, it neither enables nor starts the unit."""
    unit = "nvidia-fabricmanager.service"
    program = (DRIVER_DIR / "nv-fabricmanager").read_text().replace("@VERSION@", version)
    return Deb(
        name="nvidia-fabricmanager",
        version=_full(version),
        description=f"NVIDIA fabric manager for NVSwitch machines ({SIMULATED})",
        files={"/usr/bin/nv-fabricmanager": program, f"{UNITS}/{unit}": DRIVER_DIR / unit},
        modes={"/usr/bin/nv-fabricmanager": 0o755},
        scripts={
            "postinst": f"""#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart {unit}
fi
""",
            "prerm": f"""#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl stop {unit}; fi
""",
        },
    )


def dcgm_debs(version: str) -> list[Deb]:
    """DCGM's packages of a version, named and cut as by upstream's cmake/packaging.cmake.

    As upstream's they neither enable nor start the unit.
    """
    full, prefix = f"1:{version}-{REVISION}", "datacenter-gpu-manager-4"
    unit = "nvidia-dcgm.service"
    core = Deb(
        name=f"{prefix}-core",
        version=full,
        depends="perl-base",
        description=f"DCGM's host engine and dcgmi ({SIMULATED})",
        files={
            "/usr/bin/nv-hostengine": DCGM_DIR / "nv-hostengine",
            "/usr/bin/dcgmi": DCGMI,
            "/usr/lib/gpu-sim/host-engine": f"{version}\n",
            f"{UNITS}/{unit}": DCGM_DIR / unit,
        },
        modes={"/usr/bin/nv-hostengine": 0o755, "/usr/bin/dcgmi": 0o755},
        conflicts="datacenter-gpu-manager",
    )
    parts = ("cuda11", "cuda12", "cuda13", "proprietary")
    needs = {f"{prefix}-{part}": f"{prefix}-core" for part in parts}
    needs |= {f"{prefix}-proprietary-{cuda}": f"{prefix}-proprietary" for cuda in parts[:3]}
    return [
        core,
        *(
            Deb(
                name=name,
                version=full,
                depends=f"{companion} (= {full})",
                description=f"A part of DCGM, which is empty here ({SIMULATED})",
            )
            for name, companion in needs.items()
        ),
    ]
