"""Checks of the cluster, a file each: `gpuboot.verify.checks.cluster_check` finds them."""
