"""Secure Boot: the module on disk is one thing, the one that DKMS builds in its place another.

What openssl and modinfo print is of a module that was signed by kbuild's sign-file with two keys of
one name, as `dkms generate_mok` makes them; /proc/keys names keys by their subject key identifier.
"""

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.secure_boot import SecureBootState, standing, standing_of_next
from gpuboot.preflight import driver_problems
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_preflight import CLEAN, WORKER
from tests.unit.test_secure_boot import CANONICAL, DEBIAN, DKMS, KEYS, UBUNTU, Machine
from tests.unit.test_secure_boot import machine as machine  # a fixture

LOCKED = versions.lock(parse_settings({})).driver.version

SERIAL = "559354A3BF39E88E0D8EBA60A1700C882D79F250"
SIG_KEY = "55:93:54:A3:BF:39:E8:8E:0D:8E:BA:60:A1:70:0C:88:2D:79:F2:50"
OLD_SIG_KEY = "28:AD:BA:13:75:56:89:B1:48:1D:48:43:52:8D:4D:BF:81:FE:16:83"
KEY_ID = "9D:8A:B2:23:E8:D6:DE:96:9C:19:9C:DE:E9:93:3B:CB:79:62:E8:C0"
KEY_IN_KERNEL = KEYS.replace("88f752e560a1e0737e31163a466ad7b70a850c19", "{}")


def built_by_dkms(machine: Machine, sig_key: str, output: str) -> None:
    """A module on disk, and the key that DKMS has now."""
    machine.key(DEBIAN, output)
    machine.program(
        "openssl",
        f"case \"$*\" in *-serial*) echo serial={SERIAL} ;; *subjectKeyIdentifier*) printf '%s\\n'"
        f" 'X509v3 Subject Key Identifier: ' '    {KEY_ID}' ;; esac",
    )
    machine.program("modinfo", f'case $2 in signer) echo "{DKMS}" ;; *) echo {sig_key} ;; esac')


def test_a_key_that_was_made_anew_has_the_name_of_the_enrolled_one(machine: Machine) -> None:
    machine.keys(DKMS)  # the one before, by another identifier
    built_by_dkms(machine, SIG_KEY, "is not enrolled")
    assert machine.state().signed_by_key
    assert standing(machine.state()) == "unknown"
    built_by_dkms(machine, OLD_SIG_KEY, "is not enrolled")
    state = machine.state()
    assert (standing(state), standing_of_next(state)) == ("signed", "unknown")


def test_the_kernel_s_keys_tell_where_mokutil_does_not(machine: Machine) -> None:
    built_by_dkms(machine, OLD_SIG_KEY, "")
    (machine.root / "bin/mokutil").write_text("#!/bin/sh\nexit 1\n")
    assert standing_of_next(machine.state()) == "unknown"
    identifier = KEY_ID.replace(":", "").lower()
    text = KEY_IN_KERNEL.replace("{}", DKMS, 1).replace("{}", identifier)
    (machine.root / "proc/keys").write_text(text)
    assert machine.state().key_in_kernel
    assert standing_of_next(machine.state()) == "enrolled"


@pytest.mark.parametrize("path", [DEBIAN, UBUNTU])
def test_a_certificate_without_its_key_is_replaced_by_dkms(machine: Machine, path: str) -> None:
    machine.key(path, "is already enrolled", private=False)
    assert machine.state().key == ""
    assert standing_of_next(machine.state()) == "unknown"


def test_on_ubuntu_dkms_signs_by_shim_s_key_alone(machine: Machine) -> None:
    machine.key(DEBIAN, "is already enrolled")
    assert machine.state().key == DEBIAN
    machine.system("ubuntu")
    assert machine.state().key == ""
    machine.key(UBUNTU, "is already enrolled")
    assert machine.state().key == UBUNTU
    machine.system("debian")
    assert machine.state().key == DEBIAN


@pytest.mark.parametrize(
    ("firmware", "lockdown", "sig_enforce", "enforcer"),
    [
        (False, "[none] integrity confidentiality", "N", ""),
        (False, "none [integrity] confidentiality", "N", "lockdown=integrity"),
        (False, "none integrity [confidentiality]", "N", "lockdown=confidentiality"),
        (False, "[none] integrity confidentiality", "Y", "module.sig_enforce=1"),
        (False, None, "Y", "module.sig_enforce=1"),
        (True, "none [integrity] confidentiality", "N", "Secure Boot"),
        (True, "[none] integrity confidentiality", "Y", "Secure Boot"),
        (True, None, "N", "Secure Boot"),
        # mokutil --disable-validation
        (True, "[none] integrity confidentiality", "N", ""),
    ],
)
def test_what_makes_the_kernel_refuse_modules(
    machine: Machine, firmware: bool, lockdown: str | None, sig_enforce: str, enforcer: str
) -> None:
    machine.firmware(on=firmware)
    for path, text in (
        ("sys/kernel/security/lockdown", lockdown),
        ("sys/module/module/parameters/sig_enforce", sig_enforce),
    ):
        if text is not None:
            file = machine.root / path
            file.parent.mkdir(parents=True)
            file.write_text(f"{text}\n")
    state = machine.state()
    assert (state.enforced, state.enforcer) == (bool(enforcer), enforcer or "Secure Boot")


INSTALLED = {"nvidia-open": f"{LOCKED}-1ubuntu1"}
IN_USE = {"/etc/kubernetes/kubelet.conf": "https://10.0.0.5:6443"}
# Ubuntu's cloud image with linux-modules-nvidia-570-open-generic
BY_CANONICAL = SecureBootState(enforced=True, signer=CANONICAL, trusted=True)
NOT_ENROLLED = replace(BY_CANONICAL, key=UBUNTU, test=f"{UBUNTU} is not enrolled")
ENROLLED = replace(NOT_ENROLLED, test=f"{UBUNTU} is already enrolled")
PENDING = replace(NOT_ENROLLED, test=f"{UBUNTU} is already in the enrollment request")


def problems(
    boot: SecureBootState, node: Node = WORKER, setting: str = "refuse", **changes: Any
) -> list[tuple[str, str]]:
    parsed = parse_settings({"driver": {"secure_boot": setting}})
    state = replace(CLEAN, secure_boot=boot, headers="installed", **changes)
    reported = evaluate([node], {node.host: state}, parsed, versions.lock(parsed))
    return [(problem.cause, problem.remedy) for problem in reported]


LOADED_570: dict[str, Any] = {"driver_loaded": "570.172.08", "driver_module": "570.172.08"}
SAME_VERSION: dict[str, Any] = {"driver_loaded": LOCKED, "driver_module": LOCKED}


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("loaded", [LOADED_570, SAME_VERSION, {}])
@pytest.mark.parametrize("boot", [BY_CANONICAL, NOT_ENROLLED, PENDING])
def test_a_signed_driver_that_dkms_replaces(
    boot: SecureBootState, loaded: dict[str, Any], arch: str
) -> None:
    [(cause, remedy)] = problems(boot, arch=arch, **loaded)
    assert "Secure Boot is on" in cause
    if boot is PENDING:
        assert "DKMS's key waits for a person" in cause
    else:
        assert f"built by DKMS, in place of those that {CANONICAL} signed" in cause
        assert 'set driver.secure_boot = "mok"' in remedy
    assert (f"mokutil --import {UBUNTU}" in remedy) is (boot is NOT_ENROLLED)
    assert problems(ENROLLED, arch=arch, **loaded) == []
    assert problems(boot, setting="mok", arch=arch, **loaded) == []


def test_a_driver_that_dkms_built_already_stays() -> None:
    by_dkms = replace(NOT_ENROLLED, signer=DKMS, trusted=True)
    assert problems(by_dkms, packages=INSTALLED, **SAME_VERSION) == []
    assert problems(NOT_ENROLLED, packages={"nvidia-open": "570.172.08-1"}, **SAME_VERSION)
    assert problems(NOT_ENROLLED, packages=INSTALLED, **LOADED_570)


def test_in_a_living_cluster_no_run_enrols_a_key() -> None:
    [(_, remedy)] = problems(NOT_ENROLLED, setting="mok", kubeconfigs=IN_USE, **LOADED_570)
    assert remedy.startswith("enrol DKMS's key by hand (mokutil --import")
    assert "secure_boot" not in remedy
    assert problems(ENROLLED, setting="mok", kubeconfigs=IN_USE, **LOADED_570) == []
    docker = replace(WORKER, role="docker")
    assert problems(NOT_ENROLLED, docker, setting="mok", **LOADED_570) == []


def test_lockdown_without_secure_boot_is_no_matter_of_keys() -> None:
    boot = replace(NOT_ENROLLED, enforcer="lockdown=integrity")
    for setting in ("refuse", "mok"):
        [(cause, remedy)] = problems(boot, setting=setting, **LOADED_570)
        assert cause.startswith("lockdown=integrity is on")
        assert remedy == "take lockdown=integrity from the kernel's command line, and reboot"


def test_without_dkms_s_key_the_remedy_makes_it() -> None:
    [(cause, remedy)] = problems(BY_CANONICAL, **LOADED_570)
    assert "a key that it has yet to make" in cause
    assert "dkms generate_mok" in remedy
    [(cause, _)] = problems(replace(NOT_ENROLLED, test=""), **LOADED_570)
    assert "as far as can be told without mokutil" in cause


def test_the_next_kernel_s_module_is_warned_of() -> None:
    def lines(boot: SecureBootState, **changes: Any) -> list[str]:
        state = replace(CLEAN, secure_boot=boot, **SAME_VERSION | changes)
        return driver_problems.warnings([WORKER], {WORKER.host: state})

    [line] = lines(NOT_ENROLLED)
    assert f"mokutil --import {UBUNTU}" in line
    assert lines(PENDING)
    assert lines(ENROLLED) == []
    assert lines(BY_CANONICAL) == [], "signed by the site's own means"
    assert lines(NOT_ENROLLED, driver_loaded="") == [], "refused, if anything"
    assert lines(SecureBootState()) == []
