"""Secure Boot: whether the kernel would load NVIDIA's module, and how its key is enrolled.

With Secure Boot the kernel loads modules alone that are signed by a key it trusts: its own, the
distribution's, or one of shim's list of machine owner keys (MOK). DKMS builds NVIDIA's module on
the host and signs it by a key that it makes there, which a person has to confirm on the console
once: no program can, or it would protect from nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuboot.fact_output import Fields

Standing = Literal["off", "signed", "enrolled", "pending", "unknown"]

# Answers of `mokutil --test-key` (mokutil.c, print_skip_message and test_key)
_ENROLLED = ("is already enrolled", "is already in db")
_PENDING = "is already in the enrollment request"
PROMPT_S = 300  # how long MokManager waits for a key; ten seconds by default
PASSWORD_DIGITS = 12  # MokManager takes any keyboard for an American one: digits are where they are


@dataclass(frozen=True)
class SecureBootState:
    """Secure Boot of one host.

    + enforced: by the firmware; where it does not, nothing else is read
    + key: certificate of DKMS's key, DER; "" for none
    + test: what `mokutil --test-key` said of it; "" without mokutil
    + signer: who signed the NVIDIA module on disk; "" for nobody, or without a module
    + trusted: the kernel has that signer's key
    """

    enforced: bool = False
    key: str = ""
    test: str = ""
    signer: str = ""
    trusted: bool = False


def parse(values: Fields) -> SecureBootState:
    """What `deploys/facts/secure_boot.sh` printed, be it among other lines."""
    return SecureBootState(
        enforced=values.first("secure_boot") == "1",
        key=values.first("mok_key"),
        test=values.first("mok_test"),
        signer=values.first("module_signer"),
        trusted="module_trusted" in values,
    )


def standing(state: SecureBootState) -> Standing:
    """What becomes of the NVIDIA module under Secure Boot.

    `signed`: the one on disk is signed by a key that the kernel has; `enrolled`: what DKMS builds
    will be; `pending`: its key waits for a person at the console; `unknown`: none of these.
    """
    if not state.enforced:
        return "off"
    if state.trusted:
        return "signed"
    if state.test.endswith(_ENROLLED):
        return "enrolled"
    return "pending" if state.test.endswith(_PENDING) else "unknown"


def refusal(state: SecureBootState) -> tuple[str, str] | None:
    """Cause and remedy where the kernel would refuse the module; None where it would not."""
    found = standing(state)
    by_hand = (
        "or enrol DKMS's key by hand (mokutil --import "
        f"{state.key or '/var/lib/dkms/mok.pub'}, reboot, confirm on the console), or turn Secure "
        "Boot off"
    )
    if found == "pending":
        return (
            "Secure Boot is on, and DKMS's key waits for a person at the console: the kernel would "
            "refuse the NVIDIA modules",
            "reboot the machine and choose Enroll MOK on its console, within ten seconds; "
            "`mokutil --revoke-import` takes the request back",
        )
    if found == "unknown":
        whose = f"signed by {state.signer}" if state.signer else "signed by DKMS alone"
        return (
            "Secure Boot is on: the kernel would refuse the NVIDIA modules, which are "
            f"{whose}, a key that it does not know",
            f'set driver.secure_boot = "mok", {by_hand}',
        )
    return None


def console_steps(host: str, password: str) -> str:
    """What a person does at the console of a machine. + password: of this request alone"""
    return (
        f"{host}: Secure Boot asks for a person, once. Open the machine's console now (BMC, KVM\n"
        f"or hypervisor); it reboots, and waits {PROMPT_S // 60} minutes at a blue screen:\n"
        '    1. Press any key at "Shim UEFI key management", before the countdown ends.\n'
        "    2. Enroll MOK, Continue, Yes.\n"
        f"    3. The password, which is of this request alone and shown here only: {password}\n"
        "    4. Reboot.\n"
    )
