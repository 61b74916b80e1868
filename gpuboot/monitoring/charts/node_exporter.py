"""Values of node-exporter, a chart within kube-prometheus-stack."""

from __future__ import annotations

from gpuboot.cluster.backup import METRICS_FOLDER
from gpuboot.cluster.values import Values

# what kube-prometheus-stack 88.5.3 has there itself: a list in values takes the place of its own
_UPSTREAM = (
    "--collector.filesystem.mount-points-exclude=^/(dev|proc|sys|run/containerd/.+|"
    "var/lib/docker/.+|var/lib/kubelet/.+)($|/)",
    "--collector.filesystem.fs-types-exclude=^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|"
    "devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|"
    "rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs|erofs)$",
)


def node_exporter() -> Values:
    """It reads the metrics that programs of the host leave in a folder, which is made if missing.

    node-exporter's textfile collector reports an error where there is no such folder.
    """
    mount = {
        "name": "textfiles",
        "hostPath": METRICS_FOLDER,
        "mountPath": METRICS_FOLDER,
        "readOnly": True,
        "type": "DirectoryOrCreate",
    }
    return {
        "extraArgs": [*_UPSTREAM, f"--collector.textfile.directory={METRICS_FOLDER}"],
        "extraHostVolumeMounts": [mount],
    }
