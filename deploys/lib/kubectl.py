"""kubectl on the leader, with the administrator's rights."""

from __future__ import annotations

ADMIN_CONF = "/etc/kubernetes/admin.conf"
KUBECTL = f"kubectl --kubeconfig {ADMIN_CONF}"
# what follows is the manifest's file, or - for standard input
KUBECTL_APPLY = f"{KUBECTL} apply --server-side --force-conflicts --field-manager gpuboot -f"
