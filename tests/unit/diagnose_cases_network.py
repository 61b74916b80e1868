"""Causes in runtimes and networks, each beside what looks like it. Texts of programs are what they
really print: from public issues of containerd's, coredns' and Kubernetes' repositories, shortened.
"""

from __future__ import annotations

from dataclasses import replace

from tests.unit.diagnose_site import (
    ANSWERS,
    PODS,
    Case,
    at,
    cluster,
    control,
    crashed,
    event,
    gpu_host,
    nodes_with,
    pod,
    rules,
    site,
    state,
    stuck,
)

TOML = "containerd: drop-in config version 4 higher than root config version 2"
DOWN = "state\tcontainerd activating auto-restart exit-code 1 loaded"
NO_RUNTIME = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: "
    'no runtime for "nvidia" is configured'
)
CGROUPS = (
    'failed to create containerd task: expected cgroupsPath to be of format "slice:prefix:name" '
    'for systemd cgroups, got "/kubepods/burstable/poda668" instead: unknown'
)
# what the component of Kubernetes 1.36.3 said
NO_FLAG = "Error: unknown flag: --no-such-flag"
OUT = rules(
    "nft table inet fault {",
    "nft chain out {",
    "nft type filter hook output priority filter; policy accept;",
    "nft tcp dport 6443 drop",
    "nft }",
    "nft }",
)
# iptables -P FORWARD DROP beside kube-proxy and flannel, both by nftables, and with iptables
DROP = rules("ip iptables :INPUT ACCEPT [0:0]", "ip iptables :FORWARD DROP [0:0]")
FLANNEL = rules(
    "ip iptables :FORWARD DROP [0:0]",
    "ip iptables :FLANNEL-FWD - [0:0]",
    'ip iptables -A FORWARD -m comment --comment "flanneld forward" -j FLANNEL-FWD',
    'ip iptables -A FLANNEL-FWD -s 10.244.0.0/16 -m comment --comment "flanneld forward" -j ACCEPT',
    'ip iptables -A FLANNEL-FWD -d 10.244.0.0/16 -m comment --comment "flanneld forward" -j ACCEPT',
)
API_OFF = "api\t7 000"
NVML = "Failed to initialize NVML: Unknown Error"
SHORTENED = event(
    "train-0",
    "DNSConfigForming",
    "Search Line limits were exceeded, some search paths have been omitted, "
    "the applied search line is: ml.svc.cluster.local",
)
NO_CNI = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)


def not_ready(message: str) -> tuple[object, ...]:
    return nodes_with(ready=False, message=message)


RUNTIME = (
    Case(
        "containerd-config",
        site(
            gpu_host(
                DOWN,
                f"containerd_error\t{TOML}",
                f"log\tcontainerd {TOML}",
                "toml\t/etc/containerd/conf.d/99-nvidia.toml 4",
                without=["state\tcontainerd", "runtime"],
            )
        ),
        # it was so, and is corrected
        site(gpu_host(f"log\tcontainerd {TOML}")),
        "version 4",
    ),
    Case(
        "containerd-stopped",
        site(gpu_host(DOWN, without=["state\tcontainerd"])),
        site(gpu_host()),
        "activating (auto-restart)",
    ),
    Case(
        "nvidia-runtime-missing",
        site(
            gpu_host(gpu=replace(ANSWERS, runtime_handlers=("runc",))),
            at=cluster(
                pods=(pod("train-0", **stuck("ContainerCreating")),),
                events=(event("train-0", "FailedCreatePodSandBox", NO_RUNTIME),),
            ),
        ),
        # it was so a moment ago: the pod runs
        site(at=cluster(pods=(pod("t"),), events=(event("t", "Failed", NO_RUNTIME),))),
        "no runtime for",
    ),
    Case(
        "cgroup-mismatch",
        site(
            gpu_host(
                "kubelet_cgroup\tcgroupfs", f"log\tcontainerd {CGROUPS}", without=["kubelet_c"]
            )
        ),
        site(gpu_host(f"log\tcontainerd {CGROUPS}")),
        "cgroupDriver cgroupfs",
    ),
)

NO_UPSTREAM = (
    "[ERROR] plugin/errors: 2 example.com. A: read udp 10.244.0.5:48557->10.255.255.1:53: i/o "
    "timeout"
)

NETWORK = (
    Case(
        "api-server-down",
        site(
            gpu_host(API_OFF, without=["api"]),
            control(
                API_OFF,
                "no_manifest\tkube-apiserver",
                "log\tetcd mvcc: database space exceeded",
                'log\tetcd 2026-11-23T01:02:35Z stderr F {"level":"info","msg":"trace"}',
                without=["api"],
            ),
            cluster(error="connection refused", pods=(), nodes=(), workloads=(), targets=None),
        ),
        site(gpu_host(API_OFF, without=["api"])),
        "mvcc: database space exceeded",
    ),
    Case(
        "api-firewalled",
        site(gpu_host("api\t28 000", without=["api"], state=state(packet_filter=OUT))),
        site(gpu_host(state=state(packet_filter=OUT))),  # it answers: the rule is of another way
        "tcp dport 6443 drop",
    ),
    Case(
        "api-name",
        site(gpu_host("api\t6 000", "server\thttps://api.lab:6443", without=["api", "server"])),
        site(gpu_host("api\t28 000", without=["api"])),
        "no such name",
    ),
    Case(
        "api-unreached",
        site(gpu_host(API_OFF, without=["api"])),
        site(gpu_host("api\t28 000", without=["api"], state=state(packet_filter=OUT))),
        "connection refused",
    ),
    Case(
        "control-plane-part-failing",
        site(
            at=cluster(
                pods=(pod("kube-scheduler-cp1", "kube-system", "cp1", **crashed()),),
                logs={"kube-system/kube-scheduler-cp1/main/previous": (at(30, NO_FLAG),)},
            )
        ),
        site(at=cluster(pods=(pod("kube-scheduler-cp1", "kube-system", "cp1"),))),
        "unknown flag: --no-such-flag",
    ),
    Case(
        "forward-drop",
        site(gpu_host(state=state(packet_filter=DROP))),
        # with iptables as kube-proxy's mode flannel's rules come before the policy
        site(gpu_host(state=state(packet_filter=FLANNEL))),
        "iptables, chain FORWARD: policy drop",
    ),
    Case(
        "api-from-pods",
        site(
            at=cluster(
                pods=(replace(PODS[2], ready=False),),
                logs={
                    "kube-system/coredns-x/coredns": (
                        'failed to list *v1.Service: Get "https://10.96.0.1:443/api/v1/services": '
                        "dial tcp 10.96.0.1:443: i/o timeout",
                    )
                },
            )
        ),
        # a name server that is not reached is no API server
        site(
            at=cluster(
                pods=(replace(PODS[2], ready=False),),
                logs={
                    "kube-system/coredns-x/coredns": (
                        "HINFO: read udp 10.244.0.5:48557->172.23.83.11:53: i/o timeout",
                    )
                },
            )
        ),
        "10.96.0.1:443: i/o timeout",
    ),
    Case(
        "mtu",
        site(gpu_host("mtu\teth0 1450", without=["mtu\teth0"])),
        site(gpu_host("mtu\teth0 9000", without=["mtu\teth0"])),
        "at most 1400 fit",
    ),
    Case(
        "asymmetric-route",
        site(
            gpu_host(
                "peer\t10.0.0.11 eth1 192.168.1.12",
                "rp_filter\teth1 1",
                "kernel\t[77.1] IPv4: martian source 10.0.0.12 from 10.0.0.11, on dev eth0",
                without=["peer"],
            )
        ),
        site(gpu_host("rp_filter\teth1 1", "default_route\tdefault via 192.168.1.1 dev eth1")),
        "as 192.168.1.12",
    ),
    Case(
        "pod-network-missing",
        site(gpu_host(without=["cni"]), at=cluster(nodes=not_ready(NO_CNI))),
        site(at=cluster(nodes=not_ready("Kubelet stopped posting node status."))),
        "cni plugin not initialized",
    ),
    Case(
        "dns-loop",
        site(
            cp=control(
                "resolv\tnameserver 127.0.0.53",
                "resolv_file\t/etc/resolv.conf",
                without=["resolv"],
            ),
            at=cluster(
                pods=(replace(PODS[2], **crashed()),),
                logs={
                    "kube-system/coredns-x/coredns/previous": (
                        "[FATAL] plugin/loop: Loop (127.0.0.1:55953 -> :1053) detected for zone "
                        '".", see https://coredns.io/plugins/loop#troubleshooting.',
                    )
                },
            ),
        ),
        site(cp=control("resolv\tnameserver 127.0.0.53")),
        "Loop (127.0.0.1",
    ),
    Case(
        "dns-upstream",
        # CoreDNS 1.14, plugin/forward
        site(at=cluster(logs={"kube-system/coredns-x/coredns": (NO_UPSTREAM,) * 3})),
        # one name whose own servers are slow
        site(at=cluster(logs={"kube-system/coredns-x/coredns": (NO_UPSTREAM,)})),
        f"10.255.255.1 did not answer 3 questions, the last: {NO_UPSTREAM}\n"
        "/run/systemd/resolve/resolv.conf of cp1 names 10.0.0.2",
    ),
    Case(
        "dns-search-path",
        site(
            gpu_host("resolv\tsearch " + " ".join(f"s{number}.example" for number in range(30))),
            at=cluster(pods=(pod("train-0"),), events=(SHORTENED,)),
        ),
        # the same is said for a while after the file was mended
        site(
            gpu_host("resolv\tsearch a.example b.example c.example d.example"),
            at=cluster(pods=(pod("train-0"),), events=(SHORTENED,)),
        ),
        "Search Line limits",
    ),
)

CASES = (*RUNTIME, *NETWORK)
