"""What a failed download prints, and the cause that a run names of it."""

from __future__ import annotations

import pytest

from deploys.engine.download_retries import _failure_message as message_of
from gpuboot.hosts.failures import FAILURES, name_of


@pytest.mark.parametrize(
    ("output", "name"),
    [
        # curl 7.88 with OpenSSL 3, against a server of each kind
        ("curl: (60) SSL certificate problem: certificate is not yet valid", "clock"),
        ("curl: (60) SSL certificate problem: certificate has expired", "expired"),
        ("curl: (60) SSL certificate problem: unable to get local issuer certificate", "ca"),
        ("curl: (60) SSL certificate problem: self-signed certificate in certificate chain", "ca"),
        (
            "curl: (60) SSL: no alternative certificate subject name matches target host name 'm'",
            "name",
        ),
        (
            "curl: (35) error:0A00010B:SSL routines::wrong version number",
            "http",
        ),
        ("curl: (22) The requested URL returned error: 429", "rate"),
        ("curl: (22) The requested URL returned error: 403", "auth"),
        ("curl: (22) The requested URL returned error: 407", "proxy"),
        ("curl: (22) The requested URL returned error: 404", "missing"),
        # helm 4 and crictl print Go's words
        (
            'Error: looks like "https://m" is not a valid chart repository: Get "https://m": '
            "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: "
            "current time 2019-01-01T00:00:00Z is before 2026-01-01T00:00:00Z",
            "clock",
        ),
        ("a program that prints nothing of all that", ""),
    ],
)
def test_the_cause_is_named(output: str, name: str) -> None:
    assert name_of(output) == name


def test_a_run_says_cause_and_remedy() -> None:
    text = "write /var/lib/containerd/x: no space left on device"
    message = message_of("the images cannot be pulled", [text], None)
    assert FAILURES["space"].cause in message
    assert FAILURES["space"].remedy in message
    assert text in message


def test_a_missing_program_is_no_missing_image() -> None:
    assert "registry" not in message_of(
        "the chart: not to be had", ["sh: 1: helm: not found"], None
    )
