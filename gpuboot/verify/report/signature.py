"""Signatures of reports by SSH keys: who stands for a proof, and that nobody changed it since.

`ssh-keygen -Y` (OpenSSH 8.0 or newer) signs and verifies, as git does for commits. The signature
lies beside the report, `verify.json.sig`; its format is OpenSSH's PROTOCOL.sshsig.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpuboot.verify.report.writer import write_atomically

NAMESPACE = "gpuboot-report"  # a signature of anything else is none of a report


class SignatureError(RuntimeError):
    """A report cannot be signed, or its signature cannot be looked at. The text says why."""


@dataclass(frozen=True)
class Checked:
    """What is known of a report's signature.

    + verdict: `good`: by somebody who is listed; `unlisted`: the report is as it was signed, and
      nobody said whose key that is; `bad`: the report was changed, or the signature is no one's
    + text: for a person, with the signer or the fingerprint of the key
    """

    verdict: Literal["good", "unlisted", "bad"]
    text: str


def signature_of(report: Path) -> Path:
    """Where the signature of a file lies."""
    return report.with_name(f"{report.name}.sig")


def sign(report: Path, key: str) -> Path:
    """Sign a file, and return where the signature is.

    + key: file of a private SSH key, or of a public one whose private key an agent holds; a
      passphrase is asked for on the terminal

    Raises `SignatureError`.
    """
    result = _ssh_keygen(report, "sign", "-f", key)
    if result.returncode:
        raise SignatureError(f"{report} is not signed: {_error_text(result)}")
    target = signature_of(report)
    write_atomically(target, result.stdout)
    return target


def check(report: Path, signers: Path | None) -> Checked:
    """Whether a file is what somebody signed.

    + signers: file of the keys that may sign, as ALLOWED SIGNERS in ssh-keygen(1) has it; None:
      nobody is known

    Raises `SignatureError` when there is no signature, or no such file.
    """
    signature = signature_of(report)
    for needed in (report, signature, *([signers] if signers else [])):
        if not needed.is_file():
            raise SignatureError(f"{needed}: there is no such file")
    intact = _ssh_keygen(report, "check-novalidate", "-s", str(signature))
    if intact.returncode:
        return Checked("bad", f"not as it was signed: {_error_text(intact)}")
    key = intact.stdout.strip()
    if signers is None:
        return Checked("unlisted", f"{key}; whose key that is nobody said")
    principals = _ssh_keygen(report, "find-principals", "-s", str(signature), "-f", str(signers))
    principal = principals.stdout.split("\n")[0].strip()
    if principals.returncode or not principal:
        return Checked("bad", f"{key}, which is not in {signers}")
    valid = _ssh_keygen(report, "verify", "-s", str(signature), "-f", str(signers), "-I", principal)
    if valid.returncode:
        return Checked("bad", f"{key} of {principal}, which does not count: {_error_text(valid)}")
    return Checked("good", valid.stdout.strip())


def _ssh_keygen(report: Path, action: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["ssh-keygen", "-Y", action, "-n", NAMESPACE, *arguments]
    try:
        with report.open("rb") as signed:
            return subprocess.run(
                command, stdin=signed, capture_output=True, text=True, check=False
            )
    except FileNotFoundError as error:
        raise SignatureError(f"{error.filename}: there is no such file or program") from None


def _error_text(result: subprocess.CompletedProcess[str]) -> str:
    """Why it failed, in its own words."""
    lines = (result.stderr or result.stdout).strip().splitlines()
    return lines[-1] if lines else f"ssh-keygen ended with exit code {result.returncode}"
