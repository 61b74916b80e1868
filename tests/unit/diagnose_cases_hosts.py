"""Causes on hosts, each beside what looks like it. Texts of programs are what they really print:
from public issues of NVIDIA's, containerd's, coredns' and Kubernetes' repositories, shortened.
"""

from __future__ import annotations

from dataclasses import replace

from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.node_certificates import Certificate
from gpuboot.cluster.objects import Condition
from gpuboot.hosts.dkms import DkmsState
from gpuboot.hosts.pci import PciDevice
from gpuboot.hosts.secure_boot import SecureBootState
from gpuboot.verify.gpu_state import GpuState
from tests.unit.diagnose_site import (
    ANSWERS,
    GPU,
    NOW,
    ONE_GPU,
    SLOT,
    Case,
    cluster,
    control,
    gpu_host,
    nodes_with,
    pod,
    site,
    state,
)

ENFORCED = SecureBootState(enforced=True)
NO_DRIVER = GpuState(
    smi_error="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make "
    "sure that the latest NVIDIA driver is installed and running."
)
OFF = {"driver_loaded": "", "driver_module": ""}
REJECTED = "kernel\t[   12.1] Loading of module with unavailable key is rejected"
SWITCHES = tuple(PciDevice(f"0000:0{n}:00.0", 0x22A3, "0x068000") for n in range(4))
BOARD = (PciDevice(SLOT, 0x2330, "0x030200"), *SWITCHES)
MANAGER = {"nvidia-fabricmanager": "595.91.07-1"}
NOT_IN = replace(ANSWERS, gpus=(replace(GPU, fabric_error="fabric: In Progress"),))
RM_INIT = (
    "kernel\t[  885.2] NVRM: GPU 0000:10:00.0: RmInitAdapter failed! (0x24:0x72:1568)",
    "kernel\t[  885.3] NVRM: GPU 0000:10:00.0: rm_init_adapter failed, device minor number 0",
)
XID = "kernel\t[{at}.1] NVRM: Xid (PCI:0000:10:00): {code}, pid=1, name=x, some text"
NVLINK5 = (
    "kernel\t[89000.123456][ T4711] NVRM: Xid (PCI:0000:10:00): 149, NETIR_LINK_EVT {severity} XC0 "
    "i0 Link 00 (0x025001c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
)
NVML = "Failed to initialize NVML: Unknown Error"


def expiring(at: float) -> KubeadmState:
    certificate = Certificate("pki/apiserver.crt", at)
    return KubeadmState(
        files=("kubelet.conf", "admin.conf"), clock=NOW, certificates=(certificate,)
    )


def pressed(kind: str) -> tuple[object, ...]:
    message = "kubelet has disk pressure"
    return nodes_with(conditions={kind: Condition("True", message)})


def not_ready(message: str) -> tuple[object, ...]:
    return nodes_with(ready=False, message=message)


MACHINES = (
    Case(
        "host-silent",
        site(gpu_host(error="cannot be reached: timed out", state=None)),
        site(gpu_host()),
        "timed out",
    ),
    Case(
        "clock-skew",
        site(gpu_host(skew_s=600, state=state(ntp_synchronised=False))),
        site(gpu_host(skew_s=0.4, state=state(ntp_synchronised=False))),
        "600 s ahead",
    ),
    Case(
        "disk-full",
        site(gpu_host("disk\t/var/log 100 0 4")),
        site(gpu_host("disk\t/var/log 90 8000000 4")),
        "/var/log: 100 %",
    ),
    Case(
        "disk-full",
        site(gpu_host("disk\t/var 40 8000000 99"), at=cluster(nodes=pressed("DiskPressure"))),
        site(at=cluster(nodes=pressed("PIDPressure"))),
        "99 % of the inodes",
    ),
    Case(
        "disk-read-only",
        site(gpu_host("read_only\t/", "kernel\t[9.1] EXT4-fs (sda1): Remounting filesystem ro")),
        site(gpu_host("kernel\t[9.1] EXT4-fs (sda1): Remounting filesystem ro")),
        "mounted read-only",
    ),
    Case(
        "memory-short",
        site(gpu_host("memory_pressure\t41.50")),
        site(gpu_host("memory_pressure\t3.10")),
        "avg10=41.5",
    ),
    Case(
        "kubelet-stopped",
        site(gpu_host("state\tkubelet inactive dead success 0 loaded", without=["state\tkubelet"])),
        site(
            gpu_host(
                "state\tkubelet inactive dead success 0 loaded",
                without=["state\tkubelet"],
                kubeadm=KubeadmState(),
            )
        ),
        "inactive (dead)",
    ),
    Case(
        "certificates-expired",
        site(cp=control(kubeadm=expiring(NOW - 60))),
        site(cp=control(kubeadm=expiring(NOW + 60))),
        "pki/apiserver.crt expired",
    ),
    Case(
        "node-not-ready",
        site(at=cluster(nodes=not_ready("Kubelet stopped posting node status."))),
        site(
            gpu_host("state\tkubelet failed failed exit-code 1 loaded", without=["state\tkubelet"]),
            at=cluster(nodes=not_ready("Kubelet stopped posting node status.")),
        ),
        "stopped posting",
    ),
)

DRIVER = (
    Case(
        "nouveau-loaded",
        site(gpu_host(gpu=NO_DRIVER, state=state(modules=frozenset({"nouveau"}), **OFF))),
        site(gpu_host(state=state(modules=frozenset({"nouveau", "nvidia"})))),
        "lsmod has nouveau",
    ),
    Case(
        "module-rejected",
        site(
            gpu_host(
                REJECTED,
                gpu=NO_DRIVER,
                state=state(secure_boot=ENFORCED, **OFF),
            )
        ),
        site(gpu_host(REJECTED, gpu=NO_DRIVER, state=state(**OFF))),
        "unavailable key is rejected",
    ),
    Case(
        "module-rejected",
        site(
            gpu_host(
                "secure_boot\tSecureBoot enabled",
                "module_signer\tgpu1 Secure Boot Module Signature key",
                "mok_waiting\tgpu1 Secure Boot Module Signature key",
                gpu=NO_DRIVER,
                state=state(**OFF),
            )
        ),
        site(
            gpu_host(
                "secure_boot\tSecureBoot enabled",
                "module_signer\tgpu1 Secure Boot Module Signature key",
                "mok\tgpu1 Secure Boot Module Signature key",
                gpu=NO_DRIVER,
                state=state(**OFF),
            )
        ),
        "waits for its enrolment",
    ),
    Case(
        "headers-missing",
        site(
            gpu_host(
                without=["module_file"],
                gpu=NO_DRIVER,
                state=state(
                    headers="available",
                    dkms=DkmsState(("nvidia/595.91.07, 6.8.0-85-generic, x86_64: installed",)),
                    **OFF,
                ),
            )
        ),
        site(
            gpu_host(
                without=["module_file"],
                gpu=NO_DRIVER,
                state=state(
                    dkms=DkmsState(("nvidia/595.91.07, 6.8.0-85-generic: installed",)), **OFF
                ),
            )
        ),
        "headers are available",
    ),
    Case(
        "driver-mismatch",
        site(
            gpu_host(
                "kernel\t[7386.2] NVRM: API mismatch: the client has the version 595.91.07, but",
                gpu=GpuState(
                    smi_error="Failed to initialize NVML: Driver/library version mismatch"
                ),
                state=state(driver_loaded="590.44.01"),
            )
        ),
        # another version on disk that nobody has run into: it waits for a reboot
        site(gpu_host(state=state(driver_loaded="590.44.01"))),
        "loaded in the kernel: 590.44.01",
    ),
    Case(
        "driver-not-loaded",
        site(gpu_host(gpu=NO_DRIVER, state=state(**OFF))),
        site(gpu_host(gpu=NO_DRIVER, state=state(modules=frozenset({"nouveau"}), **OFF))),
        "couldn't communicate",
    ),
)

GPUS = (
    Case(
        "fabric-manager-missing",
        site(gpu_host(gpu=NOT_IN, state=state(pci=BOARD))),
        site(gpu_host(state=state(pci=BOARD, packages=MANAGER))),
        "4 NVSwitches",
    ),
    Case(
        "fabric-manager-version",
        site(
            gpu_host(
                "log\tnvidia-fabricmanager fabric manager NVIDIA GPU driver interface version "
                "590.44.01 don't match with driver version 595.91.07.",
                state=state(pci=BOARD, packages={"nvidia-fabricmanager": "590.44.01-1"}),
            )
        ),
        site(gpu_host(state=state(pci=BOARD, packages=MANAGER))),
        "fabric manager 590.44.01, driver 595.91.07",
    ),
    Case(
        "fabric-not-ready",
        site(
            gpu_host(
                "state\tnvidia-fabricmanager failed failed exit-code 1 loaded",
                gpu=NOT_IN,
                state=state(pci=BOARD, packages=MANAGER),
            ),
            at=cluster(
                pods=(pod("train-0", devices=ONE_GPU),),
                logs={"ml/train-0/main": ("Error 802: system not yet initialized",)},
            ),
        ),
        site(
            gpu_host(
                "state\tnvidia-fabricmanager active running success 0 loaded",
                state=state(pci=BOARD, packages=MANAGER),
            )
        ),
        "In Progress",
    ),
    Case(
        "gpu-failed",
        site(gpu_host(*RM_INIT, gpu=GpuState())),
        site(gpu_host(*RM_INIT)),  # it came up after all
        "RmInitAdapter failed",
    ),
    Case(
        "gpu-xid",
        site(gpu_host(XID.format(at=89000, code=48))),
        site(gpu_host(XID.format(at=89000, code=13), XID.format(at=100, code=48))),
        "Xid (PCI:0000:10:00): 48",
    ),
    Case(
        "gpu-xid",
        site(gpu_host(NVLINK5.format(severity="Fatal"))),
        site(gpu_host(NVLINK5.format(severity="Nonfatal"))),
        "149, NETIR_LINK_EVT Fatal",
    ),
    Case(
        "gpus-lost-in-containers",
        site(
            at=cluster(pods=(pod("train-0", devices=ONE_GPU),), logs={"ml/train-0/main": (NVML,)})
        ),
        # not well on the node itself: another matter
        site(
            gpu_host(gpu=GpuState(smi_error=NVML)),
            at=cluster(pods=(pod("train-0", devices=ONE_GPU),), logs={"ml/train-0/main": (NVML,)}),
        ),
        "/dev/char has no link",
    ),
)

CASES = (*MACHINES, *DRIVER, *GPUS)
