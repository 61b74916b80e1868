"""Secure Boot: whether the kernel would load NVIDIA's module, and how its key is enrolled.

With Secure Boot the kernel loads modules alone that are signed by a key it trusts: its own, the
distribution's, or one of shim's list of machine owner keys (MOK). DKMS builds NVIDIA's module on
the host and signs it by a key that it makes there, which a person has to confirm on the console
once: no program can, or it would protect from nothing. The signature on a module of today says
nothing of the one that DKMS builds in its place.
"""

from dataclasses import dataclass
from typing import Literal

from gpuboot.hosts.fact_output import Fields

SECURE_BOOT = "Secure Boot"
Standing = Literal["off", "signed", "enrolled", "pending", "unknown"]

# Answers of `mokutil --test-key` (mokutil.c, print_skip_message and test_key)
_ENROLLED = ("is already enrolled", "is already in db")
_PENDING = "is already in the enrollment request"
PROMPT_S = 300  # how long MokManager waits for a key; ten seconds by default
PASSWORD_DIGITS = 12  # MokManager takes any keyboard for an American one: digits are where they are


@dataclass(frozen=True)
class SecureBootState:
    """Secure Boot of one host.

    + enforced: the kernel refuses modules without a signature that it knows; where it does not,
      nothing else is read
    + enforcer: what makes it: Secure Boot, `lockdown=integrity`, `module.sig_enforce=1`
    + key: certificate of the key by which DKMS signs, DER; "" while DKMS would make another one
    + test: what `mokutil --test-key` said of it; "" without mokutil
    + key_in_kernel: the kernel has it among its keys
    + signer: who signed the NVIDIA module on disk; "" for nobody, or without a module
    + trusted: the kernel has a key of that signer's name
    + signed_by_key: it is DKMS's key that signed it, the one that is there now
    """

    enforced: bool = False
    enforcer: str = SECURE_BOOT
    key: str = ""
    test: str = ""
    key_in_kernel: bool = False
    signer: str = ""
    trusted: bool = False
    signed_by_key: bool = False


def parse(values: Fields) -> SecureBootState:
    """What `deploys/parts/secure_boot/fact.sh` printed, be it among other lines."""
    return SecureBootState(
        enforced="secure_boot" in values,
        enforcer=values.first("secure_boot") or SECURE_BOOT,
        key=values.first("mok_key"),
        test=values.first("mok_test"),
        key_in_kernel="mok_in_kernel" in values,
        signer=values.first("module_signer"),
        trusted="module_trusted" in values,
        signed_by_key="module_by_mok_key" in values,
    )


def standing_of_next(state: SecureBootState) -> Standing:
    """What becomes of the next NVIDIA module that DKMS builds: its own key alone counts.

    `enrolled`: the kernel takes it; `pending`: its key waits for a person at the console;
    `unknown`: neither.
    """
    if not state.enforced:
        return "off"
    if state.key_in_kernel or state.test.endswith(_ENROLLED):
        return "enrolled"
    return "pending" if state.test.endswith(_PENDING) else "unknown"


def standing(state: SecureBootState) -> Standing:
    """What becomes of the NVIDIA module on disk under Secure Boot.

    `signed`: it is signed by a key that the kernel has; else as what DKMS builds next.
    """
    following = standing_of_next(state)
    # by its own key, a key of the same name in the kernel is the one before
    if state.enforced and state.trusted and (following == "enrolled" or not state.signed_by_key):
        return "signed"
    return following


def refusal(
    state: SecureBootState, next_module: bool = False, in_use: bool = False
) -> tuple[str, str] | None:
    """Cause and remedy where the kernel would refuse the module; None where it would not.

    + next_module: the run has DKMS build another one than the one on disk
    + in_use: of a node of a living cluster, where a run has no key enrolled
    """
    verdict = standing_of_next(state) if next_module else standing(state)
    if verdict == "pending":
        return (
            f"{state.enforcer} is on, and DKMS's key waits for a person at the console: the kernel "
            "would refuse the NVIDIA modules",
            "reboot the machine and choose Enroll MOK on its console, within ten seconds; "
            "`mokutil --revoke-import` takes the request back",
        )
    if verdict == "unknown":
        cause = f"{state.enforcer} is on: the kernel would refuse the NVIDIA modules, which are "
        return cause + _signed_by(state, next_module), _remedy(state, in_use)
    return None


def _signed_by(state: SecureBootState, next_module: bool) -> str:
    if not next_module:
        signer = f"signed by {state.signer}" if state.signer else "signed by DKMS alone"
        return f"{signer}, a key that it does not know"
    before = f", in place of those that {state.signer} signed" if state.trusted else ""
    if not state.key:
        return f"built by DKMS{before} and signed by a key that it has yet to make"
    unknown = "" if state.test else " as far as can be told without mokutil"
    return (
        f"built by DKMS{before} and signed by its own key ({state.key}), which the kernel does not "
        f"know{unknown}"
    )


def _remedy(state: SecureBootState, in_use: bool) -> str:
    if state.enforcer != SECURE_BOOT:
        return f"take {state.enforcer} from the kernel's command line, and reboot"
    enrol = f"mokutil --import {state.key}, reboot, confirm on the console"
    if not state.key:
        enrol = (
            "`dkms generate_mok`, on Ubuntu `update-secureboot-policy --new-key`; then "
            "mokutil --import its certificate, reboot, confirm on the console"
        )
    by_hand = f"enrol DKMS's key by hand ({enrol}), or turn Secure Boot off"
    return by_hand if in_use else f'set driver.secure_boot = "mok", or {by_hand}'


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
