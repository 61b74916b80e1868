"""All checks that are one file: of hosts, and of the cluster, in the order of their files' names.

They are looked up here, and not in `host_check` and `cluster_check`: the files import those.
"""

from __future__ import annotations

from gpuboot.verify.checks import of_cluster, of_hosts
from gpuboot.verify.checks.cluster_check import ClusterCheck
from gpuboot.verify.checks.host_check import HostCheck
from gpuboot.verify.checks.one_file import found_in

HOST_CHECKS: tuple[HostCheck, ...] = found_in(of_hosts)
CLUSTER_CHECKS: tuple[ClusterCheck, ...] = found_in(of_cluster)
