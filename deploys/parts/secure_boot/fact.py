"""Secure Boot, and whose signature on the NVIDIA module the kernel would accept."""

from deploys.engine.framed import Framed, script
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.secure_boot import SecureBootState, parse

FUNCTION = script("secure_boot/fact.sh")


class SecureBoot(Framed[SecureBootState]):
    """Whether it is on, DKMS's key, and the signature of the module on disk."""

    default = SecureBootState

    def command(self, module: str) -> str:
        """`module`: name of the kernel module whose signature counts."""
        return f"{FUNCTION}export LC_ALL=C; secure_boot {module}; printf 'end\\tok\\n'"

    def process(self, output: list[str]) -> SecureBootState:
        return parse(Fields(output))
