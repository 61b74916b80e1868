"""Checks of hosts, a file each: `gpuboot.verify.checks.one_file_checks` finds them."""
