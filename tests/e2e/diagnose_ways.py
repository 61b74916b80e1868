"""Faults of the ways to the API server and between pods, each with the cause to be named."""

from __future__ import annotations

from tests.e2e.diagnose_faults import Fault, bent, kubectl, on, steps

_CONFIG = "kubectl -n kube-system get configmap coredns"
_RESTART = "kubectl -n kube-system rollout restart deployment/coredns"
_APPROVER = ("-n", "kube-system", "deployment/kubelet-csr-approver")
_STARTED = kubectl("rollout", "status", *_APPROVER, "--timeout=2m")

WAY_FAULTS = (
    Fault(
        ("api-firewalled",),
        on(
            "gpu1",
            "nft 'add table inet fault; add chain inet fault out "
            "{ type filter hook output priority 0; }; "
            "add rule inet fault out tcp dport 6443 drop'",
        ),
        on("gpu1", "nft delete table inet fault"),
    ),
    Fault(
        ("api-unreached",),
        on(
            "gpu1",
            "name=$(sed -n 's#^ *server: *https://##p' /etc/kubernetes/kubelet.conf); "
            "getent ahostsv4 ${name%:*} | sed 's/ .*//;q' >/root/unreached; "
            "ip route add unreachable $(cat /root/unreached)/32",
        ),
        on("gpu1", "ip route del unreachable $(cat /root/unreached)/32"),
        single=True,
    ),
    Fault(
        ("api-name",),
        *bent(
            "gpu1",
            "/etc/hosts",
            "name=$(sed -n 's#^ *server: *https://##p' /etc/kubernetes/kubelet.conf); "
            'grep -v "${name%:*}" $file >/root/hosts; cat /root/hosts >$file',
        ),
    ),
    Fault(
        ("kubelet-certificate",),
        steps(
            kubectl("set", "env", *_APPROVER, "PROVIDER_REGEX=^nobody$"),
            _STARTED,
            on("gpu1", "rm /var/lib/kubelet/pki/kubelet-server-*; systemctl restart kubelet"),
        ),
        steps(
            kubectl("rollout", "undo", *_APPROVER),
            _STARTED,
            on("gpu1", "systemctl restart kubelet"),
        ),
    ),
    Fault(
        ("forward-drop",),
        on("gpu2", "iptables -P FORWARD DROP"),
        on(
            "gpu2",
            "iptables -P FORWARD ACCEPT; "
            # what the remedy has put there
            "iptables -S FORWARD | sed -n 's/^-A \\(FORWARD -[sd] 10.244.*\\)/-D \\1/p' | "
            "xargs -r -L 1 iptables",
        ),
    ),
    Fault(
        ("dns-upstream",),
        # CoreDNS itself asks for a name as it starts
        on(
            "cp1",
            f"{_CONFIG} -o json >/root/coredns.json; sed 's#forward . [^ ]*#forward . "
            f"10.255.255.1#' /root/coredns.json | kubectl replace -f -; {_RESTART}; sleep 15",
        ),
        on("cp1", f"kubectl replace --force -f /root/coredns.json; {_RESTART}"),
    ),
    Fault(
        ("control-plane-part-failing",),
        *bent(
            "cp1",
            "/etc/kubernetes/manifests/kube-scheduler.yaml",
            # in place: the kubelet would start a second file beside it as well
            "sed 's/^    - kube-scheduler$/&\\n    - --no-such-flag/' $file >/root/scheduler; "
            "cat /root/scheduler >$file; sleep 25",
        ),
    ),
)
