"""Checks of hosts, a file each: `gpuboot.verify.checks.host_check` finds them."""
