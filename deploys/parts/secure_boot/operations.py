"""Secure Boot: DKMS's key becomes one of the machine's own, with a person at its console."""

import secrets
import shlex
import sys

from pyinfra.api.command import FunctionCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import answers, changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail, failure, report_failure
from deploys.engine.operation import operation
from deploys.engine.remote import RemoteError, read_fact, run
from deploys.parts.reboot.reboot import RebootError, reboot
from deploys.parts.secure_boot.fact import SecureBoot
from gpuboot.hosts.secure_boot import PASSWORD_DIGITS, PROMPT_S, console_steps, standing
from gpuboot.plan import Change, Effect

_MODULE = "nvidia"
_RETRY_REMEDY = "run again, with somebody at the console: each run asks anew, with another password"


@operation()
def enrolled(may_reboot: bool, timeout_s: int | None) -> Commands:
    """Ensure that the kernel takes the modules that DKMS builds, where Secure Boot is on.

    Asks for it (mokutil), tells the one-time password and what to do, and reboots. Run it with
    `_serial=True`, when DKMS has built its first module, which makes its key.

    + may_reboot: `settings.driver.reboot` allows it; else a person reboots, and runs again
    + timeout_s: how long the machine may take to come back, with the person at its console (None:
      by its memory)
    """
    state = read(SecureBoot, module=_MODULE)
    status = standing(state)
    if status in ("off", "signed", "enrolled"):
        host.noop(f"Secure Boot: {status}")
        return
    if not state.key:
        yield fail(
            "Secure Boot is on, and DKMS has made no key to sign modules with",
            "`dkms generate_mok` makes it; on Ubuntu `update-secureboot-policy --new-key`",
        )
        return
    changes.record(
        Change(subject=f"machine owner key {state.key}", field="Secure Boot", new="enrolled"),
        *([Effect(kind="reboot", target=f"host {host.name}", note="with a person at its console")]
          if may_reboot else []),
    )  # fmt: skip
    yield FunctionCommand(enrol, (state.key, may_reboot, timeout_s), {})


def enrol(state: State, host: Host, key: str, may_reboot: bool, timeout_s: int | None) -> bool:
    """A FunctionCommand's body. False: the key is not enrolled."""
    password = "".join(secrets.choice("0123456789") for _ in range(PASSWORD_DIGITS))
    try:
        _request_enrolment(host, key, password)
        # past every log: a run's report and pyinfra's own lines must not hold it
        sys.stderr.write("\n" + console_steps(host.name, password) + "\n")
        sys.stderr.flush()
        if not may_reboot:
            cause = "Secure Boot: DKMS's key is enrolled when this machine reboots"
            remedy = "reboot it with somebody at its console, as said above, then run again"
            return report_failure(host, failure(cause, remedy))
        reboot(host, "Secure Boot: DKMS's key is to be confirmed on the console", timeout_s)
        answers.forget(host)
        status = standing(read_fact(host, SecureBoot, module=_MODULE))
    except (RebootError, RemoteError) as error:
        return report_failure(host, str(error))
    if status in ("signed", "enrolled"):
        return True
    return report_failure(
        host,
        failure("DKMS's key is not enrolled: nobody confirmed it on the console", _RETRY_REMEDY),
    )


def _request_enrolment(host: Host, key: str, password: str) -> None:
    """Have shim's MokManager ask at the next boot. Raises `RemoteError`.

    mokutil reads the password twice from standard input where that is no terminal (mokutil 0.7.2,
    src/util.c, read_hidden_line). A request that is there already has a password that nobody may
    remember.
    """
    path = shlex.quote(key)
    if standing(read_fact(host, SecureBoot, module=_MODULE)) == "pending":
        run(host, "mokutil --revoke-import")
    run(host, f"mokutil --timeout {PROMPT_S} >/dev/null")
    run(host, f"mokutil --import {path} >/dev/null", f"{password}\n{password}\n")
    if standing(read_fact(host, SecureBoot, module=_MODULE)) != "pending":
        output = run(host, f"mokutil --test-key {path} 2>&1 || :").strip()
        raise RemoteError(f"{host.name}: mokutil did not take the request: {output}")
