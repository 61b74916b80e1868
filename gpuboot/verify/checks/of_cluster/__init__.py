"""Checks of the cluster, a file each: `gpuboot.verify.checks.one_file_checks` finds them."""
