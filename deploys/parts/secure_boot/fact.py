"""Secure Boot, and whose signature on the NVIDIA module the kernel would accept."""

from __future__ import annotations

from importlib import resources

from typing_extensions import override

from deploys.engine.framed import Framed
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.secure_boot import SecureBootState, parse

FUNCTION = resources.files("deploys.parts.secure_boot").joinpath("fact.sh").read_text()


class SecureBoot(Framed[SecureBootState]):
    """Whether it is on, DKMS's key, and the signature of the module on disk."""

    default = SecureBootState

    @override
    def command(self, module: str) -> str:
        """`module`: name of the kernel module whose signature counts."""
        return f"{FUNCTION}export LC_ALL=C; secure_boot {module}; printf 'end\\tok\\n'"

    @override
    def process(self, output: list[str]) -> SecureBootState:
        return parse(Fields(output))
