"""Reports signed by real SSH keys."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.verify.report.signature import SignatureError, check, sign, signature_of
from gpuboot.verify.report.writer import write
from tests.unit.evidence import evidence
from tests.unit.reports import report


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    write(report(evidence()), tmp_path)
    return tmp_path / "verify.json"


def signers(key: Path, options: str = 'namespaces="gpuboot-report"') -> Path:
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    path = key.with_name("signers")
    path.write_text(f"ops@example.com {options} {public}\n")
    return path


def test_a_listed_signer_is_named(proof: Path, key: Path) -> None:
    assert sign(proof, str(key)) == signature_of(proof)
    result = check(proof, signers(key))
    assert result.verdict == "good"
    assert "ops@example.com" in result.text
    assert check(proof, None).verdict == "unlisted"


def test_a_changed_report_is_none_that_was_signed(proof: Path, key: Path) -> None:
    sign(proof, str(key))
    proof.write_text(proof.read_text().replace("pass", "fail", 1))
    assert check(proof, signers(key)).verdict == "bad"


@pytest.mark.parametrize("options", ['namespaces="git"', 'valid-before="20200101"'])
def test_a_key_that_may_not_sign_reports_does_not_count(
    proof: Path, key: Path, options: str
) -> None:
    sign(proof, str(key))
    assert check(proof, signers(key, options)).verdict == "bad"


def test_another_key_is_not_listed(proof: Path, key: Path, tmp_path: Path) -> None:
    foreign_key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", foreign_key], check=True)
    sign(proof, str(foreign_key))
    assert "not in" in check(proof, signers(key)).text


def test_a_signature_of_something_else_is_none(proof: Path, key: Path) -> None:
    command = ["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(key)]
    with proof.open("rb") as signed:
        signature = subprocess.run(command, stdin=signed, capture_output=True, check=True)
    signature_of(proof).write_bytes(signature.stdout)
    assert check(proof, signers(key)).verdict == "bad"


def test_what_is_missing_is_named(proof: Path, key: Path, tmp_path: Path) -> None:
    with pytest.raises(SignatureError, match=r"verify\.json\.sig"):
        check(proof, signers(key))
    with pytest.raises(SignatureError, match="not signed"):
        sign(proof, str(tmp_path / "none"))


def test_the_command_tells_by_its_exit_code(proof: Path, key: Path) -> None:
    def run(*arguments: str) -> int:
        return CliRunner().invoke(app, ["report", "show", str(proof.parent), *arguments]).exit_code

    check_options = ("--check", "--signers", str(signers(key)))
    assert run(*check_options) == 2  # nobody signed it
    assert run("--sign", str(key)) == 0
    assert run(*check_options) == 0
    assert run("--check") == 2  # nobody said whom to trust
    assert run() == 0
    assert run(*check_options) == 0, "shown again it is the same"
    proof.write_text(proof.read_text().replace('"gpuboot": "', '"gpuboot": "0.0.1-'))
    assert run(*check_options) == 1
    assert run() == 0
    assert run(*check_options) == 2, "written anew: its signature is gone"
