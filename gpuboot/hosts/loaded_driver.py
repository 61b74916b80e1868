"""The NVIDIA driver in the kernel, by what it says of itself."""

import re

_VERSION = re.compile(r"\s(\d+\.\d+(?:\.\d+)?)\s")


def parse(line: str) -> tuple[str, bool]:
    """Version and flavour from the first line of /proc/driver/nvidia/version.

    `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.91.07  Release Build …`
    """
    if not line:
        return "", False
    match = _VERSION.search(f"{line} ")
    if not match:
        raise ValueError(f"no version in {line!r}")
    return match[1], "Open Kernel Module" in line
