"""How surely hosts show a cause: by its own evidence, another reason, or what is old.

Lines are those of Kubernetes 1.36.3, its plugins and drivers; times vary.
"""

from __future__ import annotations

from tests.unit.diagnose_cases_hosts import (
    expiring,
    pressed,
)
from tests.unit.diagnose_cases_network import API_OFF, CGROUPS, DOWN, NO_CNI, OUT, TOML, not_ready
from tests.unit.diagnose_judged import CERTAIN, LIKELY, POSSIBLE, EvidenceCase
from tests.unit.diagnose_site import (
    NOW,
    at,
    cluster,
    control,
    gpu_host,
    site,
    state,
)

CASES = (
    EvidenceCase("host-silent", "present", site(gpu_host(error="timed out", state=None)), CERTAIN),
    EvidenceCase(
        "host-silent",
        "another",
        site(gpu_host(error="timed out", state=None), control(error="timed out", state=None)),
        LIKELY,
    ),
    EvidenceCase("clock-skew", "present", site(gpu_host(skew_s=600)), CERTAIN),
    EvidenceCase(
        "clock-skew", "another", site(gpu_host(skew_s=600), control(skew_s=600)), POSSIBLE
    ),
    EvidenceCase("disk-full", "present", site(gpu_host("disk\t/var/log 100 0 4")), CERTAIN),
    EvidenceCase("disk-full", "old", site(at=cluster(nodes=pressed("DiskPressure"))), LIKELY),
    EvidenceCase("disk-full", "another", site(at=cluster(nodes=pressed("PIDPressure"))), None),
    EvidenceCase(
        "memory-short",
        "present",
        site(gpu_host("memory_pressure\t41.50"), at=cluster(nodes=pressed("MemoryPressure"))),
        CERTAIN,
    ),
    EvidenceCase("memory-short", "old", site(at=cluster(nodes=pressed("MemoryPressure"))), LIKELY),
    EvidenceCase("memory-short", "another", site(gpu_host("memory_pressure\t41.50")), LIKELY),
    EvidenceCase(
        "certificates-expired", "present", site(cp=control(kubeadm=expiring(NOW - 60))), CERTAIN
    ),
    EvidenceCase(
        "certificates-expired",
        "another",
        site(cp=control(kubeadm=expiring(NOW - 60), skew_s=600)),
        POSSIBLE,
        "clock-skew",
    ),
    EvidenceCase(
        "api-firewalled",
        "present",
        site(gpu_host("api\t28 000", without=["api"], state=state(packet_filter=OUT))),
        CERTAIN,
    ),
    EvidenceCase(
        "api-firewalled", "another", site(gpu_host("api\t28 000", without=["api"])), LIKELY
    ),
    # a name that does not resolve, and a port at which nobody listens
    EvidenceCase(
        "api-firewalled",
        "another",
        site(gpu_host("api\t6 000", without=["api"])),
        None,
        "api-name",
    ),
    EvidenceCase(
        "api-firewalled",
        "another",
        site(gpu_host(API_OFF, without=["api"])),
        None,
        "api-unreached",
    ),
    EvidenceCase(
        "api-firewalled",
        "another",
        site(gpu_host("api\t35 000", without=["api"])),
        None,
        "api-unreached",
    ),
    EvidenceCase(
        "asymmetric-route",
        "present",
        site(
            gpu_host(
                "peer\t10.0.0.11 eth1 192.168.1.12",
                "kernel\t[89990.1] IPv4: martian source 10.0.0.12 from 10.0.0.11, on dev eth0",
                without=["peer"],
            )
        ),
        CERTAIN,
    ),
    EvidenceCase(
        "asymmetric-route",
        "another",
        site(gpu_host("peer\t10.0.0.11 eth1 192.168.1.12", "rp_filter\teth1 1", without=["peer"])),
        LIKELY,
    ),
    EvidenceCase(
        "asymmetric-route",
        "old",
        site(
            gpu_host(
                "default_route\tdefault via 192.168.1.1 dev eth1",
                "kernel\t[77.1] IPv4: martian source 10.0.0.12 from 10.0.0.11, on dev eth0",
            )
        ),
        None,
    ),
    EvidenceCase(
        "pod-network-missing",
        "present",
        site(gpu_host(without=["cni"]), at=cluster(nodes=not_ready(NO_CNI))),
        CERTAIN,
    ),
    # its file is there: containerd has not read it yet, or cannot
    EvidenceCase(
        "pod-network-missing", "another", site(at=cluster(nodes=not_ready(NO_CNI))), LIKELY
    ),
    EvidenceCase(
        "containerd-config",
        "present",
        site(gpu_host(DOWN, f"containerd_error\t{TOML}", without=["state\tcontainerd"])),
        CERTAIN,
    ),
    EvidenceCase(
        "containerd-config",
        "another",
        site(gpu_host(DOWN, f"log\tcontainerd {at(900, TOML)}", without=["state\tcontainerd"])),
        LIKELY,
    ),
    EvidenceCase(
        "containerd-config", "old", site(gpu_host(f"log\tcontainerd {at(30, TOML)}")), None
    ),
    *(
        EvidenceCase(
            "cgroup-mismatch",
            kind,
            site(
                gpu_host(
                    "kubelet_cgroup\tcgroupfs",
                    f"log\tcontainerd {at(ago, CGROUPS)}",
                    without=["kubelet_cgroup"],
                )
            ),
            certainty,
        )
        for kind, ago, certainty in (("present", 20, CERTAIN), ("another", 3000, LIKELY))
    ),
)
