"""How surely GPUs and containers show a cause: by its own evidence, another reason, or what is old.

Lines are those of Kubernetes 1.36.3, its plugins and drivers; times vary.
"""

from __future__ import annotations

from dataclasses import replace

from gpuboot.verify.gpu_state import GpuState
from tests.unit.diagnose_cases_hosts import (
    BOARD,
    ENFORCED,
    MANAGER,
    NO_DRIVER,
    NOT_IN,
    NVML,
    OFF,
    REJECTED,
    RM_INIT,
    XID,
)
from tests.unit.diagnose_judged import CERTAIN, LIKELY, EvidenceCase, restarted
from tests.unit.diagnose_site import (
    ANSWERS,
    DNS,
    ONE_GPU,
    at,
    cluster,
    control,
    crashed,
    gpu_host,
    pod,
    site,
    state,
)

CASES = (
    EvidenceCase(
        "module-rejected",
        "present",
        site(gpu_host(REJECTED, gpu=NO_DRIVER, state=state(secure_boot=ENFORCED, **OFF))),
        CERTAIN,
    ),
    # another module was refused: who signed ours is enrolled
    EvidenceCase(
        "module-rejected",
        "another",
        site(
            gpu_host(
                REJECTED,
                "module_signer\tkey",
                "mok\tkey",
                gpu=NO_DRIVER,
                state=state(secure_boot=ENFORCED, **OFF),
            )
        ),
        LIKELY,
    ),
    EvidenceCase(
        "module-rejected",
        "another",
        site(
            gpu_host(
                REJECTED,
                gpu=NO_DRIVER,
                state=state(secure_boot=ENFORCED, **OFF),
                without=["module_file"],
            )
        ),
        None,
        "driver-missing",
    ),
    EvidenceCase("gpu-failed", "present", site(gpu_host(*RM_INIT, gpu=GpuState())), CERTAIN),
    EvidenceCase(
        "gpu-failed",
        "another",
        site(
            gpu_host(
                "kernel\t[  885.2] NVRM: GPU 0000:66:00.0: RmInitAdapter failed! (0x24:0x72:1568)",
                gpu=GpuState(),
            )
        ),
        LIKELY,
    ),
    # the driver was loaded anew, and a GPU is the host's no more
    EvidenceCase(
        "gpu-failed",
        "old",
        site(
            gpu_host(
                *RM_INIT,
                "kernel\t[ 900.1] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.91",
                gpu=GpuState(),
            )
        ),
        None,
    ),
    EvidenceCase("gpu-xid", "present", site(gpu_host(XID.format(at=89000, code=48))), LIKELY),
    EvidenceCase("gpu-xid", "another", site(gpu_host(XID.format(at=89000, code=13))), None),
    EvidenceCase("gpu-xid", "old", site(gpu_host(XID.format(at=86000, code=48))), None),
    EvidenceCase(
        "gpu-xid",
        "old",
        site(
            gpu_host(
                XID.format(at=89000, code=48),
                "kernel\t[89100.1] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  595.91.07",
            )
        ),
        None,
    ),
    EvidenceCase(
        "fabric-manager-missing",
        "present",
        site(gpu_host(gpu=NOT_IN, state=state(pci=BOARD))),
        CERTAIN,
    ),
    EvidenceCase(
        "fabric-manager-missing", "another", site(gpu_host(state=state(pci=BOARD))), LIKELY
    ),
    *(
        EvidenceCase(
            "fabric-manager-version",
            kind,
            site(
                gpu_host(
                    "state\tnvidia-fabricmanager active running success 0 loaded",
                    gpu=answers,
                    state=state(pci=BOARD, packages={"nvidia-fabricmanager": "590.44.01-1"}),
                )
            ),
            certainty,
        )
        for kind, answers, certainty in (("present", NOT_IN, CERTAIN), ("another", ANSWERS, LIKELY))
    ),
    *(
        EvidenceCase(
            "fabric-not-ready",
            kind,
            site(
                gpu_host(
                    f"state\tnvidia-fabricmanager {unit} loaded",
                    gpu=NOT_IN,
                    state=state(pci=BOARD, packages=MANAGER),
                )
            ),
            certainty,
        )
        for kind, unit, certainty in (
            ("present", "failed failed exit-code 1", CERTAIN),
            ("another", "active running success 0", LIKELY),
        )
    ),
    *(
        EvidenceCase(
            "gpus-lost-in-containers",
            kind,
            site(
                at=cluster(
                    pods=(pod("train-0", devices=ONE_GPU, **changes),),
                    logs={f"ml/train-0/main{run}": (at(ago, NVML),)},
                )
            ),
            certainty,
        )
        for kind, run, ago, changes, certainty in (
            ("present", "", 20, {}, CERTAIN),
            ("another", "", 4000, {}, LIKELY),
            ("old", "/previous", 30, restarted(30), None),
        )
    ),
    *(
        EvidenceCase(
            "dns-loop",
            kind,
            site(
                cp=control(f"resolv\tnameserver {server}", without=["resolv\tn"]),
                at=cluster(
                    pods=(replace(DNS, **crashed()),),
                    logs={
                        f"{DNS.key}/main/previous": (
                            at(
                                30,
                                "[FATAL] plugin/loop: Loop (127.0.0.1:55953 -> :1053) detected for "
                                'zone "."',
                            ),
                        )
                    },
                ),
            ),
            certainty,
        )
        for kind, server, certainty in (
            ("present", "127.0.0.53", CERTAIN),
            ("another", "10.0.0.2", LIKELY),
        )
    ),
)
