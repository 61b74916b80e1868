"""Alerts on the network inside the cluster: Services, and the names that lead to them."""

from __future__ import annotations

from gpuboot.cluster.service_scrape import JOB, TARGET
from gpuboot.monitoring.rules.alert import OWN_SOURCE, Alert
from gpuboot.monitoring.rules.requirements import Requirement

_PROXY_LOG = "`kubectl -n kube-system logs -l k8s-app=kube-proxy --prefix --tail=20`"
_SERVICE_MAP = (
    "On a node: `nft list map ip kube-proxy service-ips` has a line for each Service's port (with "
    "another cluster.proxy_mode: `iptables-save | grep KUBE-SERVICES`, `ipvsadm -Ln`)"
)
_RESTART_PROXY = (
    "Restart kube-proxy: `kubectl -n kube-system rollout restart daemonset/kube-proxy`."
)
_VERIFY = "Verify: `gpuboot verify INVENTORY`; the link `services` must pass on every GPU node."
_LAST = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
_QUEUED = "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds"


_UNREACHABLE = Alert(
    name="ClusterServicesUnreachable",
    severity="critical",
    component="cluster",
    action="none",
    expr=f'max by (instance) (up{{job="{JOB}"}}) == 0',
    hold_for="5m",
    summary="Services cannot be reached by name from Prometheus' pod",
    description="{{ $labels.instance }} does not answer: either its name is not resolved, or its "
    "Service's address leads to no pod.",
    meaning=f"Prometheus reads one target, `{TARGET}`, as every pod would reach it: by its name "
    "and through its Service. It gets no answer.",
    reason="New pods can reach neither the API server nor storage nor each other, while every "
    "target that is scraped by its pod's address looks healthy. Running jobs keep their "
    "connections, and fail when they open the next one.",
    check=("Which nodes: `gpuboot verify INVENTORY`, link `services`", _SERVICE_MAP, _PROXY_LOG,
           "CoreDNS: `kubectl -n kube-system get pods,endpointslices -l k8s-app=kube-dns -o wide`"),
    remedy=("Services are missing there: " + _RESTART_PROXY,
            "CoreDNS' pods are not ready: their log and `kubectl describe` tell why; "
            "`kubectl -n kube-system rollout restart deployment/coredns`.",
            "Both are well: packets between nodes are lost (flannel: UDP 8472 with vxlan, 51820 "
            "with wireguard).", _VERIFY),
    requires=Requirement.KUBERNETES,
    source=OWN_SOURCE,
)  # fmt: skip

_NOT_SYNCING = Alert(
    name="KubeProxyNotSyncing",
    severity="warning",
    component="cluster",
    action="none",
    expr=f"(time() - {_LAST} > {{threshold}})\n  and {_QUEUED} > {_LAST}",
    hold_for="5m",
    threshold=300,
    unit="seconds since kube-proxy last wrote its rules, while a change waits",
    summary="kube-proxy on {{ $labels.instance }} does not write its rules",
    description="A change of Services has waited for {{ $value | humanizeDuration }}.",
    meaning="kube-proxy has received changes of Services, or of the pods behind them, and has "
    "not been able to write them into the node's packet filter.",
    reason="Connections from this node go to pods that are gone, and new Services do not work "
    "there.",
    check=(_PROXY_LOG, "On the node: does another program change the packet filter?"),
    remedy=(_RESTART_PROXY, "An error of `nft` or `iptables-restore` in its log: the kernel lacks "
            "a module, or the filter of another program stands in the way.", _VERIFY),
    requires=Requirement.CONTROL_PLANE_TARGETS,
    source="kube-proxy's own health check compares these two (v1.36.3 "
    f"pkg/proxy/healthcheck/proxy_health.go); five minutes is {OWN_SOURCE}",
)  # fmt: skip

ALERTS = [_UNREACHABLE, _NOT_SYNCING]
