"""Causes that no fault of the lab makes, each with the reason."""

from __future__ import annotations

from tests.unit import diagnose_cases_reports, diagnose_cases_words

# held by cases alone
NOT_IN_THE_LAB = {
    **dict.fromkeys(
        ("headers-missing", "module-rejected", "nouveau-loaded"),
        "the machines share the computer's kernel",
    ),
    **dict.fromkeys(
        (
            *("fabric-manager-missing", "fabric-manager-version", "fabric-not-ready"),
            *("nvswitch-fatal", "nvswitch-always-fatal"),
        ),
        "the simulated GPUs have no NVSwitches",
    ),
    "gpu-xid": "the kernel's log is the computer's",
    **dict.fromkeys(
        (
            *("image-clock", "image-digest", "image-expired", "image-http", "image-name"),
            *("image-platform", "image-rate", "image-space", "image-media", "image-unpack"),
        ),
        "the lab's mirror answers as it should, or not at all",
    ),
    **dict.fromkeys(
        ("definition-missing", "release-missing"),
        "only a run of the product undoes it",
    ),
    "etcd-corrupt": "the lab's etcd has one member",
    "pending-claim": "the lab has no DRA driver",
    "gate-closed": "the gate is off there; tests/e2e/test_gate.py closes nodes",
    "pending-nodes": "a cluster without nodes has no pods that a site would miss",
    "image-pull": "for texts that nobody has seen yet",
    **dict.fromkeys(
        (
            *("pod-sandbox", "pod-rejected", "pod-not-ready", "gpus-not-found", "conntrack-full"),
            *("pod-evicted", "pod-terminating", "container-out-of-memory", "process-ids-short"),
            *("node-missing", "kubelet-credentials", "etcd-unhealthy", "api-overloaded"),
            *("webhook-certificate", "gpu-other-driver", "gpu-not-on-bus", "driver-missing"),
            "module-not-built",
            *{case.id for case in (*diagnose_cases_words.CASES, *diagnose_cases_reports.CASES)}
            - {"config-missing"},
            *("webhook-conversion", "scrape-denied", "machine-id-shared"),
        ),
        "judged by texts of real sites alone",
    ),
}
