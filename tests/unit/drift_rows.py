"""Changes that people make to a cluster, each with what drift names of it: rows of a table."""

from __future__ import annotations

from gpuboot.cluster import static_pods
from gpuboot.hosts.boot import ConfigLine
from tests.unit.drift_plants import (
    DROP_IN,
    START,
    Row,
    another_manifest,
    boot,
    kubelet,
    manifest,
    modules,
    process,
    sysctl,
    without_manifest,
)
from tests.unit.drift_rows_access import ACCESS_ROWS

ADMIN = "KUBELET_EXTRA_ARGS="
RUNTIME = "plugins.io.containerd.cri.v1.runtime"
RUNC = f"{RUNTIME}.containerd.runtimes.runc.options"
IMAGES = "plugins.io.containerd.cri.v1.images"
KUBELET_ROWS = (
    Row(
        "20 pods by /etc/default/kubelet",
        lambda: kubelet("maxPods", 20, f"{ADMIN}--max-pods=20"),
        ("maxPods is 20, expected 110", "/etc/default/kubelet:1", "--max-pods=20", "daemon-reload"),
    ),
    Row(
        "image pulls beside each other by a drop-in",
        lambda: kubelet(
            "serializeImagePulls", False, f"{START} --serialize-image-pulls=false", DROP_IN
        ),
        ("serializeImagePulls is False, expected True", DROP_IN),
    ),
    Row(
        "a kubelet that everybody may ask",
        lambda: kubelet("authentication.anonymous.enabled", True, f"{ADMIN}--anonymous-auth=true"),
        ("authentication.anonymous.enabled is True, expected False", "/etc/default/kubelet"),
    ),
    Row(
        "rights that the kubelet does not ask for",
        lambda: kubelet(
            "authorization.mode", "AlwaysAllow", f"{ADMIN}--authorization-mode=AlwaysAllow"
        ),
        ("authorization.mode is AlwaysAllow, expected Webhook",),
    ),
    Row(
        "a port without credentials",
        lambda: kubelet("readOnlyPort", 10255, f"{ADMIN}--read-only-port=10255"),
        ("readOnlyPort is 10255, expected no value",),
    ),
    Row(
        "certificates that nobody renews",
        lambda: kubelet("rotateCertificates", False, f"{ADMIN}--rotate-certificates=false"),
        ("rotateCertificates is False, expected True",),
    ),
    Row(
        "another cgroup driver",
        lambda: kubelet("cgroupDriver", "cgroupfs", f"{ADMIN}--cgroup-driver=cgroupfs"),
        ("cgroupDriver is cgroupfs, expected systemd",),
    ),
    Row(
        "memory kept for others by a folder of configuration",
        lambda: kubelet(
            "systemReserved", {"memory": "8Gi"}, f"{START} --config-dir=/etc/kubelet.d", DROP_IN
        ),
        ("systemReserved is {'memory': '8Gi'}, expected no value", "--config-dir=/etc/kubelet.d"),
    ),
    Row(
        "evictions later than the settings say",
        lambda: kubelet(
            "evictionHard",
            {"memory.available": "1Mi"},
            f"{ADMIN}--eviction-hard=memory.available<1Mi",
        ),
        ("evictionHard is {'memory.available': '1Mi'}", "--eviction-hard"),
    ),
    Row(
        "static pods of another folder",
        lambda: kubelet("staticPodPath", "/root/pods", f"{ADMIN}--pod-manifest-path=/root/pods"),
        ("staticPodPath is /root/pods, expected /etc/kubernetes/manifests",),
    ),
    *(
        Row(
            f"a kubelet's {path}",
            lambda path=path, value=value, flag=flag: kubelet(path, value, f"{ADMIN}--{flag}"),  # type: ignore[misc]
            (f"{path} is {value}", "/etc/default/kubelet:1"),
        )
        for path, value, flag in (
            ("clusterDNS", ["1.1.1.1"], "cluster-dns=1.1.1.1"),
            ("enableDebuggingHandlers", False, "enable-debugging-handlers=false"),
            ("cpuCFSQuota", False, "cpu-cfs-quota=false"),
            ("maxOpenFiles", 1000, "max-open-files=1000"),
            ("eventRecordQPS", 1, "event-qps=1"),
            ("tlsMinVersion", "VersionTLS10", "tls-min-version=VersionTLS10"),
            ("shutdownGracePeriod", "30s", "config-dir=/etc/kubelet.d"),
            ("resolvConf", "/etc/resolv.corp", "resolv-conf=/etc/resolv.corp"),
            ("tlsCertFile", "/root/kubelet.crt", "tls-cert-file=/root/kubelet.crt"),
            ("logging.format", "json", "logging-format=json"),
            ("imageGCHighThresholdPercent", 50, "image-gc-high-threshold=50"),
            ("registerWithTaints", [{"key": "a"}], "register-with-taints=a=b:NoSchedule"),
            ("enableSystemLogQuery", True, "config-dir=/etc/kubelet.d"),
        )
    ),
    *(
        Row(
            f"a kubelet's flag --{flag}",
            lambda flag=flag: kubelet(line=f"{ADMIN}--{flag} --max-pods=110"),  # type: ignore[misc]
            (f"/etc/default/kubelet:1 gives the kubelet `--{flag}`", "daemon-reload"),
        )
        for flag in ("node-ip=10.9.9.9", "root-dir /srv/kubelet", "node-labels=a=b,c=d")
    ),
    Row(
        "a kubelet that began before its file was put back",
        lambda: kubelet("maxPods", 77),
        ("maxPods is 77", "systemctl restart kubelet"),
    ),
)
HOST_ROWS = (
    Row(
        "a sysctl file that sorts later",
        lambda: sysctl("/etc/sysctl.d/99-zzz.conf", "fs.inotify.max_user_instances = 128"),
        ("/etc/sysctl.d/99-zzz.conf:1", "expected fs.inotify.max_user_instances = 8192"),
    ),
    Row(
        "a sysctl file of /run",
        lambda: sysctl("/run/sysctl.d/99-zzz.conf", "net.ipv4.ip_forward = 0"),
        ("/run/sysctl.d/99-zzz.conf:1", "expected net.ipv4.ip_forward = 1"),
    ),
    Row(
        "forwarding switched off by its other name",
        lambda: sysctl("/usr/lib/sysctl.d/99-zzz.conf", "net.ipv4.conf.all.forwarding=0"),
        ("/usr/lib/sysctl.d/99-zzz.conf:1", "expected net.ipv4.ip_forward = 1"),
    ),
    Row(
        "ufw's own sysctls",
        lambda: sysctl("/etc/ufw/sysctl.conf", "net/ipv4/ip_forward=0"),
        ("/etc/ufw/sysctl.conf:1",),
    ),
    Row(
        "a module on the deny list",
        lambda: modules(lines=("/etc/modprobe.d/hardening.conf:3:blacklist br_netfilter",)),
        ("br_netfilter is not loaded at the next boot", "/etc/modprobe.d/hardening.conf:3"),
    ),
    Row(
        "a module that a command stands for",
        lambda: modules(lines=("/etc/modprobe.d/cis.conf:1:install overlay /bin/false",)),
        ("overlay is not loaded at the next boot", "/etc/modprobe.d/cis.conf:1"),
    ),
    Row(
        "a module that the kernel's command line refuses",
        lambda: modules(boot_options=("module_blacklist=floppy,br_netfilter",)),
        ("br_netfilter is not loaded", "/proc/cmdline"),
    ),
    Row(
        "another cgroup driver by a drop-in of containerd",
        lambda: boot(
            containerd_settings=(
                ConfigLine("/etc/containerd/conf.d/50-x.toml", 2, f"{RUNC}.SystemdCgroup = false"),
            )
        ),
        ("/etc/containerd/conf.d/50-x.toml:2", "SystemdCgroup = false, expected true"),
    ),
    *(
        Row(
            f"containerd's {name}",
            lambda name=name, value=value: boot(  # type: ignore[misc]
                containerd_settings=(
                    ConfigLine("/etc/containerd/conf.d/50-x.toml", 2, f"{name} = {value}"),
                )
            ),
            ("/etc/containerd/conf.d/50-x.toml:2", f"{name} = ", "expected "),
        )
        for name, value in (
            ("disabled_plugins", "['io.containerd.grpc.v1.cri']"),
            ("root", "'/srv/containerd'"),
            ("state", "'/srv/run'"),
            (f"{IMAGES}.snapshotter", "'native'"),
            (f"{RUNTIME}.enable_cdi", "false"),
            (f"{RUNTIME}.cni.conf_dir", "'/x'"),
            (f"{RUNTIME}.containerd.default_runtime_name", "'nvidia'"),
            (f"{RUNTIME}.containerd.runtimes.nvidia.options.BinaryName", "'/usr/bin/runc'"),
        )
    ),
    Row(
        "a module that another name stands for",
        lambda: modules(lines=("/etc/modprobe.d/cis.conf:1:alias overlay off",)),
        ("overlay is not loaded at the next boot", "alias overlay off"),
    ),
    Row(
        "registries of another folder",
        lambda: boot(
            containerd_settings=(
                ConfigLine(
                    "/etc/containerd/conf.d/50-x.toml", 7, f"{IMAGES}.registry.config_path = '/x'"
                ),
            )
        ),
        ("conf.d/50-x.toml:7", "config_path = /x, expected /etc/containerd/certs.d"),
    ),
    Row(
        "containerd by another command",
        lambda: boot(
            containerd=(
                ConfigLine(
                    "/etc/systemd/system/containerd.service.d/a.conf",
                    3,
                    "ExecStart=/usr/bin/containerd --config /root/c.toml",
                ),
            )
        ),
        ("/etc/systemd/system/containerd.service.d/a.conf:3", "--config /root/c.toml"),
    ),
)
POD_ROWS = (
    Row(
        "a flag of the controller manager",
        lambda: manifest(
            "kube-controller-manager.yaml",
            "    - --leader-elect=true\n",
            "    - --leader-elect=true\n    - --node-monitor-grace-period=5m\n",
        ),
        ("kube-controller-manager.yaml", "-    - --node-monitor-grace-period=5m"),
    ),
    Row(
        "a flag of the API server",
        lambda: manifest("kube-apiserver.yaml", "=Node,RBAC", "=AlwaysAllow"),
        ("kube-apiserver.yaml", "-    - --authorization-mode=AlwaysAllow"),
    ),
    Row(
        "a flag of etcd",
        lambda: manifest("etcd.yaml", "snapshot-count=10000", "snapshot-count=5000"),
        ("etcd.yaml", "+    - --snapshot-count=10000"),
    ),
    Row(
        "an image of the scheduler",
        lambda: manifest("kube-scheduler.yaml", "kube-scheduler:v", "kube-scheduler-x:v"),
        ("kube-scheduler.yaml", "kube-scheduler-x"),
    ),
    Row(
        "a manifest that is gone",
        lambda: without_manifest("kube-scheduler.yaml"),
        ("kube-scheduler.yaml", '"old": null'),
    ),
    Row(
        "a copy of a manifest beside it",
        lambda: another_manifest("kube-apiserver.yaml.bak", "kube-apiserver.yaml"),
        ("kube-apiserver.yaml.bak is a second manifest of the pod kube-apiserver",),
    ),
    Row(
        "a manifest of somebody's beside kubeadm's",
        lambda: another_manifest("agent.yaml", "etcd.yaml", "name: etcd", "name: agent"),
        ("/etc/kubernetes/manifests/agent.yaml is no manifest of kubeadm's", "DaemonSet"),
    ),
    Row(
        "a manifest of somebody's on a worker",
        lambda: [static_pods.foreign_pod("agent.yaml").what],
        ("/etc/kubernetes/manifests/agent.yaml is no manifest of kubeadm's",),
    ),
    Row(
        "a process with another flag than its manifest",
        lambda: process("kube-controller-manager", "--concurrent-gc-syncs=1"),
        ("kube-controller-manager does not run as", "runs with --concurrent-gc-syncs=1"),
    ),
)
ROWS = (*KUBELET_ROWS, *HOST_ROWS, *POD_ROWS, *ACCESS_ROWS)
