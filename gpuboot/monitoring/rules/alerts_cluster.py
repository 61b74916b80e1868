"""Alerts on nodes, and on the basics of a cluster that we made: certificates and etcd.

kube-prometheus-stack brings rules of its own, and what those cover is not repeated: members down,
no leader, fsync above 0.5 s, database at 95 % of its quota, certificates in their last week. What
stands here warns earlier, or covers what they cannot see.
"""

from __future__ import annotations

from gpuboot.cluster import gate
from gpuboot.monitoring.rules.alert import OWN_SOURCE, VERIFY, Alert
from gpuboot.monitoring.rules.promql import RESOURCES
from gpuboot.monitoring.rules.requirements import Requirement

_HAS_GPUS = f"max by (node) (kube_node_status_capacity{{{RESOURCES}}} > 0)"
_READY = 'kube_node_status_condition{condition="Ready", status="true"}'
_DAY = 86400


_NODES = [
    Alert(
        name="GPUNodeNotReady",
        severity="critical",
        component="cluster",
        action="investigate",
        expr=f"max by (node) ({_READY}) == 0\n  and on (node) {_HAS_GPUS}",
        hold_for="5m",
        summary="GPU node {{ $labels.node }} is not ready",
        description="Its kubelet does not report, or reports an error. Pods are evicted after "
        "five minutes.",
        meaning="Kubernetes lost contact with a node that has GPUs, or the node itself reports "
        "that it is not ready.",
        reason="All its GPUs are gone from the cluster at once.",
        check=("`kubectl describe node NODE`: Conditions, Events", "Does it answer by SSH? Its "
               "management console?", "On the node: `systemctl status kubelet containerd`, "
               "`journalctl -u kubelet --since -30m | tail -50`, `df -h /var`"),
        remedy=("Unreachable: management console, power, network.",
                "Reachable: `systemctl restart containerd kubelet`; a full disk first.",
                "Came back after a reboot: `gpuboot verify INVENTORY`."),
        requires=Requirement.KUBE_STATE_METRICS,
        source="Earlier and harder than upstream's KubeNodeNotReady (15 minutes, warning)",
    ),
    Alert(
        name="GPUNodeCordonedLong",
        severity="warning",
        component="cluster",
        action="investigate",
        expr=f"max by (node) (kube_node_spec_unschedulable == 1)\n  and on (node) {_HAS_GPUS}",
        hold_for="24h",
        summary="GPU node {{ $labels.node }} has been cordoned for a day",
        description="Somebody took it out of service and has not put it back.",
        meaning="The node has taken no new pods for a day.",
        reason="Forgotten cordons are the most common way to lose GPUs.",
        check=("Who and why: `kubectl describe node NODE | grep -i -A3 -E 'taint|annotation'`",
               "Is anything wrong with it? `ALERTS{node=\"NODE\"}`"),
        remedy=("Repaired: " + VERIFY, "Still broken: silence this alert until the replacement is "
                "in."),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUNodeUnproven",
        severity="warning",
        component="cluster",
        action="investigate",
        expr=f'max by (node) (kube_node_spec_taint{{key="{gate.KEY}"}}) == 1',
        hold_for="30m",
        summary="GPU node {{ $labels.node }} takes no pods: its GPUs are not proven",
        description="It is new, or was upgraded, repaired or rebooted, and its GPUs have not been "
        "proven for half an hour, or a proof has failed.",
        meaning=f"The node carries the taint `{gate.KEY}`, and no proof of its GPUs has passed.",
        reason="Its GPUs stand idle until somebody looks: a proof that passes opens it by itself.",
        check=("Why: `kubectl get node NODE -o jsonpath='{.status.conditions[?(@.type==\""
               + gate.CONDITION + "\")].message}'`",
               "What the gate did, on the leader: `journalctl -u gpuboot-gate --since -1h`",
               "Is the device plugin there? `kubectl -n gpu-operator get pods -o wide "
               "--field-selector spec.nodeName=NODE`"),
        remedy=("Mend what the message names; its link in docs/checks.md has the steps.",
                "Then `gpuboot verify INVENTORY`: a pass opens the node at once. By itself the "
                "gate tries again after ten minutes."),
        requires=Requirement.KUBE_STATE_METRICS,
        source=OWN_SOURCE,
    ),
]  # fmt: skip

_EXPIRY = "On the control plane: `kubeadm certs check-expiration`"
_CERTIFICATES = [
    Alert(
        name="ClusterCertificateExpiring",
        severity="warning",
        component="cluster",
        action="none",
        expr="histogram_quantile(0.01, sum by (le)"
        " (rate(apiserver_client_certificate_expiration_seconds_bucket[5m])))"
        f" / {_DAY} < {{threshold}}\n"
        "  and on () sum(rate(apiserver_client_certificate_expiration_seconds_count[5m])) > 0",
        hold_for="1h",
        threshold=30,
        unit="days",
        summary="A client certificate of the API server expires within a month",
        description="About {{ $value | printf \"%.0f\" }} days are left. kubeadm's certificates "
        "last a year; each run of deploys/site.py renews those that end within a month.",
        meaning="A client certificate that is used to log in to the API server expires soon: one "
        "of the control plane, of a kubelet or of a person.",
        reason="When it expires, controllers, the scheduler or kubectl stop working; so a cluster "
        "that nobody touches for a year stops by itself.",
        check=(_EXPIRY, "On each node: `openssl x509 -noout -enddate -in "
               "/var/lib/kubelet/pki/kubelet-client-current.pem`"),
        remedy=("kubeadm's own: `pyinfra INVENTORY deploys/site.py` renews them and restarts what "
                "uses them, one control plane after the other; so does an upgrade of Kubernetes.",
                "A person's own short-lived certificate: switch the alert off or lower the "
                "threshold."),
        requires=Requirement.KUBERNETES,
        source="upstream's KubeClientCertificateExpiration warns a week before; a month is "
        f"{OWN_SOURCE}",
    ),
    Alert(
        name="KubeletCertificateExpiring",
        severity="warning",
        component="cluster",
        action="none",
        expr="min by (node) (kubelet_certificate_manager_client_ttl_seconds)"
        f" / {_DAY} < {{threshold}}",
        hold_for="1h",
        threshold=30,
        unit="days",
        summary="The kubelet of {{ $labels.node }} does not renew its certificate",
        description="{{ $value | printf \"%.0f\" }} days are left; it should have been renewed by "
        "now.",
        meaning="A kubelet renews its client certificate when 10 to 30 % of its year are left. "
        "Less than a month means that renewal fails.",
        reason="When it expires, the node drops out of the cluster and cannot come back by itself.",
        check=("`kubectl get csr`", "On the node: `journalctl -u kubelet | grep -i certificate | "
               "tail`", "`openssl x509 -noout -enddate -in "
               "/var/lib/kubelet/pki/kubelet-client-current.pem`"),
        remedy=("Pending requests: check that the controller manager runs; it signs them.",
                "Otherwise `systemctl restart kubelet`; if that does not help, `kubeadm reset` "
                "and `kubeadm join` on that node."),
        requires=Requirement.KUBERNETES,
        source="Kubernetes' certificate manager; upstream warns a week before; a month is "
        f"{OWN_SOURCE}",
    ),
]  # fmt: skip

_ETCD_LOGS = "`kubectl logs -n kube-system etcd-NODE --tail=50`"
_ETCD = [
    Alert(
        name="EtcdNotMonitored",
        severity="warning",
        component="cluster",
        action="none",
        expr="absent(etcd_server_has_leader)",
        hold_for="15m",
        summary="No etcd is scraped",
        description="etcd's alerts, ours and upstream's, cannot fire.",
        meaning="Prometheus has no series of etcd at all. Upstream's rules notice a member "
        "that does not answer, but not that there is no target.",
        reason="etcd holds the cluster's state.",
        check=("`kubectl get endpoints,endpointslices -n kube-system | grep etcd`",
               "On the control plane: `ss -ltn | grep 2381` (must not be 127.0.0.1)"),
        remedy=("`pyinfra INVENTORY deploys/site.py` makes etcd listen and be scraped.",
                "If etcd is not to be monitored: `monitoring.control_plane_targets = False`."),
        requires=Requirement.CONTROL_PLANE_TARGETS,
        source=OWN_SOURCE,
    ),
    Alert(
        name="EtcdDatabaseLarge",
        severity="warning",
        component="cluster",
        action="none",
        expr="max by (instance) (etcd_mvcc_db_total_size_in_bytes)\n"
        "  / max by (instance) (etcd_server_quota_backend_bytes) > {threshold}",
        hold_for="15m",
        threshold=0.8,
        unit="share of etcd's quota (2 GiB unless set)",
        summary="etcd's database is close to its size limit",
        description="{{ $value | humanizePercentage }} of its quota on {{ $labels.instance }}.",
        meaning="The database file is close to the limit that etcd sets for it.",
        reason="At the limit etcd refuses every write: no pod starts, no lease is renewed.",
        check=(_ETCD_LOGS, "What is in it: `kubectl get --raw /metrics | grep "
               "apiserver_storage_objects | sort -k2 -n | tail`"),
        remedy=("Delete what has piled up (events, finished jobs, custom resources).",
                "Then release the space, one member at a time: `kubectl exec -n kube-system "
                "etcd-NODE -- etcdctl --cacert /etc/kubernetes/pki/etcd/ca.crt --cert "
                "/etc/kubernetes/pki/etcd/server.crt --key /etc/kubernetes/pki/etcd/server.key "
                "defrag`."),
        requires=Requirement.CONTROL_PLANE_TARGETS,
        source=f"etcd; upstream's etcdDatabaseQuotaLowSpace comes at 95 %; 80 % is {OWN_SOURCE}",
    ),
    Alert(
        name="EtcdSlowDisk",
        severity="warning",
        component="cluster",
        action="none",
        expr="histogram_quantile(0.99, sum by (instance, le)"
        " (rate(etcd_disk_wal_fsync_duration_seconds_bucket[5m]))) > {threshold}",
        hold_for="15m",
        threshold=0.1,
        unit="seconds, 99th percentile of writing the log to disk",
        summary="etcd's disk is slow",
        description="{{ $value | humanizeDuration }} for one fsync on {{ $labels.instance }}; "
        "etcd wants less than 10 ms.",
        meaning="Writing etcd's log to disk takes too long.",
        reason="Slow etcd makes a slow API server, and leader elections that look like outages.",
        check=("On that machine: `iostat -x 5`", _ETCD_LOGS,
               "What else writes there? Images, logs and etcd often share one disk."),
        remedy=("Move /var/lib/etcd to a disk of its own, SSD or NVMe.",),
        requires=Requirement.CONTROL_PLANE_TARGETS,
        source="etcd's documentation asks for 10 ms; upstream warns at 0.5 s; 0.1 s is "
        f"{OWN_SOURCE}",
    ),
]  # fmt: skip

_CLUSTERS = [
    Alert(
        name="ClusterNameNotUnique",
        severity="warning",
        component="cluster",
        action="none",
        expr='count by () (count_values by () ("created", '
        'kube_namespace_created{namespace="kube-system"})) > 1',
        hold_for="15m",
        summary="{{ $value }} clusters send series with one cluster name "
        "({{ with $labels.cluster }}{{ . }}{{ else }}none{{ end }})",
        description="Nodes of the same name hide each other's faults, and alerts do not say which "
        "of the clusters they are about.",
        meaning="Several namespaces kube-system, made at different times, have one label "
        "`cluster`, or none: series of several clusters in one Prometheus under one name.",
        reason="Rules tell clusters apart by that label alone. What aggregates by node takes two "
        "machines for one: the fault of one is hidden by the other.",
        check=("Where the series come from: "
               '`kube_namespace_created{namespace="kube-system"}` and `kube_node_info`',
               "`cluster.name` in the settings of each site; its default is the same for all"),
        remedy=("Give each cluster a `cluster.name` of its own and run "
                "`pyinfra INVENTORY deploys/site.py` for it.",
                "A cluster that was made anew under its old name: the alert ends by itself when "
                "the old series are five minutes old."),
        requires=Requirement.KUBE_STATE_METRICS,
        source="A namespace kube-system is made once, with its cluster, and cannot be deleted",
    ),
]  # fmt: skip

ALERTS = [*_NODES, *_CERTIFICATES, *_ETCD, *_CLUSTERS]
