"""Why the NVIDIA driver is not there, or not the one that its libraries need."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts, Host
from gpuboot.hosts import dkms, module_loading
from gpuboot.hosts.dkms import parse_status
from gpuboot.hosts.node_state import NodeState

_REJECTED = (
    "Key was rejected",
    "key was rejected",
    "unavailable key is rejected",
    "Required key not available",
    "unsigned module",
)
_MISMATCH = "Driver/library version mismatch"
_API = "NVRM: API mismatch"


def with_gpus(facts: Facts) -> Iterator[Host]:
    """The hosts that were read and have GPUs on the bus."""
    for host in facts.read:
        if host.state is not None and host.state.gpus:
            yield host


def is_loaded(host: Host) -> bool:
    return bool(host.state and host.state.driver_loaded)


def _smi_error_lines(host: Host) -> tuple[str, ...]:
    error = host.gpu.smi_error if host.gpu else ""
    return (f"nvidia-smi: {error}",) if error else ()


def nouveau_loaded(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        module = module_loading.conflicting(host.state.modules) if host.state else ""
        if module and not is_loaded(host):
            kernel = host.kernel(module)
            evidence = (
                f"lsmod has {module}, and no NVIDIA driver is loaded",
                *_smi_error_lines(host),
                *kernel[-1:],
            )
            yield Sighting(node=host.node, evidence=evidence, values={"module": module})


def driver_missing(facts: Facts) -> Iterator[Sighting]:
    """Hosts without a driver in the kernel, on disk, among packages and in DKMS."""
    for host in with_gpus(facts):
        state = host.state
        if state is None or not host.gpus or is_loaded(host) or state.driver_installed:
            continue
        if not (host.details.module_file or state.dkms.status):
            evidence = ("no NVIDIA driver is loaded, on disk, or installed as a package",)
            yield Sighting(node=host.node, evidence=(*evidence, *_smi_error_lines(host)))


def module_not_built(facts: Facts) -> Iterator[Sighting]:
    """Hosts that have the kernel's headers, and whose DKMS has no module for it all the same."""
    for host in with_gpus(facts):
        state = host.state
        if state is None or is_loaded(host) or host.details.module_file:
            continue
        modules = parse_status(state.dkms.status)
        if not modules or state.headers != "installed":
            continue
        if any(item.kernel == state.kernel and item.status == "installed" for item in modules):
            continue
        newest = max(modules, key=lambda item: item.version)
        name = f"{newest.module}/{newest.version}"
        yield Sighting(
            node=host.node,
            evidence=(dkms.problem(name, state.kernel, state.dkms)[0], *state.dkms.status[:3]),
            values={"module": name, "kernel": state.kernel},
        )


def module_rejected(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        details = host.details
        # what is not on disk, nobody refused; that DKMS did not build it is another cause
        if not details.module_file and not details.mok_waiting:
            continue
        on = (
            bool(host.state and host.state.secure_boot.enforced) or "enabled" in details.secure_boot
        )
        if not on or is_loaded(host):
            continue
        evidence = ["Secure Boot is on, and the NVIDIA module is not loaded"]
        kernel = host.kernel(*_REJECTED)
        if details.module_file:
            evidence.append(f"signer of {details.module_file}: {details.module_signer or 'none'}")
        unknown = bool(details.module_file) and details.module_signer not in details.mok
        if details.mok_waiting:
            evidence.append(
                f"waits for its enrolment at the console: {', '.join(details.mok_waiting)}"
            )
        if kernel or details.mok_waiting or unknown:
            # the kernel does not say which module it refused: not one whose signer is enrolled
            is_proven = (kernel and unknown) or details.module_signer in details.mok_waiting
            confidence = Confidence.CERTAIN if is_proven else Confidence.LIKELY
            yield Sighting(
                node=host.node, evidence=(*evidence, *kernel[-1:]), confidence=confidence
            )


def headers_missing(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        state = host.state
        if state is None or is_loaded(host) or state.headers == "installed":
            continue
        built = [line for line in state.dkms.status if state.kernel in line]
        if host.details.module_file or built or not state.dkms.status:
            continue
        evidence = (
            f"the kernel {state.kernel} runs, and its headers are {state.headers}",
            f"dkms built the driver for others: {'; '.join(state.dkms.status)}",
        )
        confidence = Confidence.LIKELY if state.headers == "unknown" else Confidence.CERTAIN
        yield Sighting(
            node=host.node,
            evidence=(*evidence, *_smi_error_lines(host)),
            confidence=confidence,
            values={"package": _install_headers(state)},
        )


def _install_headers(state: NodeState) -> str:
    if state.os_id in ("debian", "ubuntu"):
        package = state.headers_package or f"linux-headers-{state.kernel}"
        return f"apt-get install -y {package}"
    return f"dnf install -y kernel-devel-{state.kernel}"


def driver_mismatch(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        state = host.state
        smi_error = host.gpu.smi_error if host.gpu else ""
        kernel = host.kernel(_API)
        if state is None or not is_loaded(host) or _MISMATCH not in smi_error:
            continue
        evidence = [f"nvidia-smi: {smi_error}", f"loaded in the kernel: {state.driver_loaded}"]
        if on_disk := state.driver_module or state.driver_package:
            evidence.append(f"on disk: {on_disk}")
        yield Sighting(node=host.node, evidence=(*evidence, *kernel[-1:]))


def driver_not_loaded(facts: Facts) -> Iterator[Sighting]:
    for host in with_gpus(facts):
        if is_loaded(host) or not host.gpus:
            continue
        kernel = host.kernel("NVRM", "nvidia")
        count = len(host.state.gpus) if host.state else 0
        evidence = (
            f"{count} GPUs on the bus, and no NVIDIA driver in the kernel",
            *_smi_error_lines(host),
            *_blocked(host),
        )
        yield Sighting(
            node=host.node, evidence=(*evidence, *kernel[-2:]), confidence=Confidence.POSSIBLE
        )


def _blocked(host: Host) -> Iterator[str]:
    """What on the host keeps the driver from being loaded, as preflight names it."""
    if (state := host.state) is None:
        return
    for cause, _ in module_loading.problems(state.module_loading, rebuild=""):
        yield cause
    if module := dkms.not_built(state.dkms.status, state.driver_package, state.kernel):
        yield dkms.problem(module, state.kernel, state.dkms)[0]


BELOW = (
    *("driver-not-loaded", "operand-desired-zero", "nvidia-runtime-missing", "pod-crash-loop"),
    *("pending-resource", "device-plugin-missing", "gpus-not-found", "gpu-failed"),
    *("gpus-not-injected", "gpus-not-in-container"),
)

TABLE = (
    Cause(
        id="nouveau-loaded",
        meaning="the kernel's own driver, nouveau or its successor, holds the GPUs",
        find=nouveau_loaded,
        remedy="keep it from loading, and reboot; deploys/site.py does both for nouveau",
        command="printf 'blacklist {module}\\noptions {module} modeset=0\\n' | "
        "sudo tee /etc/modprobe.d/blacklist-nouveau.conf; sudo update-initramfs -u; sudo reboot",
        on="node",
        explains=BELOW,
    ),
    Cause(
        id="driver-missing",
        meaning="no NVIDIA driver is installed",
        find=driver_missing,
        remedy="run deploys/site.py, which installs it; dpkg's log tells who removed it",
        command="pyinfra INVENTORY deploys/site.py",
        on="here",
        explains=BELOW,
    ),
    Cause(
        id="module-not-built",
        meaning="DKMS has built no NVIDIA module for the running kernel, although its headers are "
        "there",
        find=module_not_built,
        remedy="mend what the build's log says (mostly a kernel that this driver does not support "
        "yet, or another compiler), or boot the kernel before",
        command="sudo dkms install {module} -k {kernel} && sudo modprobe nvidia",
        on="node",
        explains=BELOW,
    ),
    Cause(
        id="module-rejected",
        meaning="Secure Boot refuses the NVIDIA module: nobody that the firmware trusts signed it",
        find=module_rejected,
        remedy="enrol the key that signed it and confirm that at the console after a reboot, or "
        "install a signed module",
        command="sudo mokutil --import /var/lib/dkms/mok.pub && sudo reboot",
        on="node",
        explains=BELOW,
    ),
    Cause(
        id="headers-missing",
        meaning="the kernel was upgraded, and without its headers DKMS built no driver for it",
        find=headers_missing,
        remedy="install the headers of the running kernel; DKMS then builds the driver",
        command="sudo {package} && sudo dkms autoinstall && sudo modprobe nvidia",
        on="node",
        explains=BELOW,
    ),
    Cause(
        id="driver-mismatch",
        meaning="driver in the kernel and libraries on disk are of different versions",
        find=driver_mismatch,
        remedy="reboot the node, so that the driver on disk is loaded; hold its packages",
        command="kubectl drain {node} --ignore-daemonsets --delete-emptydir-data; "
        "ssh {node} sudo reboot",
        explains=BELOW,
    ),
    Cause(
        id="driver-not-loaded",
        meaning="no NVIDIA driver is loaded, and why is not known",
        find=driver_not_loaded,
        remedy="load it, and read what the kernel says",
        command="sudo modprobe nvidia; sudo dmesg | grep -iE 'nvrm|nvidia' | tail -20",
        on="node",
        fallback=True,
        explains=("operand-desired-zero", "pending-resource"),
    ),
)
