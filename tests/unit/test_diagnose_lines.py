"""Lines of logs: their times, and by which a program says why it ended; recorded in the lab
with Kubernetes 1.36.3: a flag, a file or a certificate was wrong.
"""

from __future__ import annotations

import pytest

from gpuboot.config import redaction
from gpuboot.diagnose import log_lines
from gpuboot.diagnose.facts import Host
from tests.unit.diagnose_site import NOW, at, cluster, gpu_host, pod

_AT = "2026-11-25T07:16:38.96933945Z stderr F "
HELP = (
    f"{_AT}Usage:",
    f"{_AT}  kube-controller-manager [flags]",
    f"{_AT}Misc flags:",
    f"{_AT}      --master string       The address of the Kubernetes API server",
    f"{_AT}",
)
GRPC = (
    f"{_AT}W1125 07:18:15.308676       1 logging.go:55] [core] [Channel #4 SubChannel #6] grpc: "
    'addrConn.createTransport failed to connect to {Addr: "127.0.0.1"}. Err: connection error: '
    'desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: '
    'certificate signed by unknown authority"'
)


@pytest.mark.parametrize(
    ("text", "second", "remainder"),
    [
        (f"{_AT}Error: x", 38.969339, "Error: x"),
        ("2026-11-25T07:19:24+0000 cp1 kubelet[10651]: E1125 x", 24.0, "E1125 x"),
        ("2026-11-25T08:19:24+0100 cp1 systemd[1]: Started", 24.0, "Started"),
        ("2026-11-25T06:53:07.230794270Z time=x level=info", 7.230794, "time=x level=info"),
        ("mvcc: database space exceeded", None, "mvcc: database space exceeded"),
    ],
)
def test_a_line_and_its_time(text: str, second: float | None, remainder: str) -> None:
    line = log_lines.parse(text)
    assert line == remainder
    assert (None if line.at is None else line.at % 60) == (second and pytest.approx(second))


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ((*HELP, f"{_AT}Error: unknown flag: --no-such-flag"), ["unknown flag: --no-such-flag"]),
        (
            (f"{_AT}flag provided but not defined: -no-such-flag", *HELP),
            ["flag provided but not defined: -no-such-flag"],
        ),
        (
            (
                f"{_AT}I1125 07:18:40.225880       1 server.go:152] Golang settings",
                f"{_AT}E1125 07:18:40.225880       1 options.go:205] The manifest file is empty, "
                "ignoring.",
                f'{_AT}E1125 07:18:40.404301       1 run.go:72] "command failed" err="open '
                '/etc/kubernetes/pki/nosuch.crt: no such file or directory"',
            ),
            ["nosuch.crt: no such file or directory"],
        ),
        # why, and that it gave up
        (
            (GRPC, f'{_AT}E1125 07:18:35.1       1 run.go:72] "command failed" err="timeout"'),
            ["x509: certificate signed by unknown authority", "command failed"],
        ),
        (
            (
                "2026-11-25T07:19:24+0000 cp1 kubelet[10651]: E1125 07:19:24.341128   10651 "
                'run.go:72] "command failed" err="failed to parse kubelet flag: unknown flag: '
                '--no-such-flag"',
                "2026-11-25T07:19:24+0000 cp1 systemd[1]: kubelet.service: Failed with result "
                "'exit-code'.",
            ),
            ["unknown flag: --no-such-flag"],
        ),
        # a busy etcd that complains of nothing
        ((f'{_AT}{{"level":"warn","msg":"apply request took too long"}}',), []),
    ],
)
def test_why_a_program_ended(output: tuple[str, ...], expected: list[str]) -> None:
    words = log_lines.last_words(map(log_lines.parse, output))
    assert len(words) == len(expected)
    assert all(part in line for part, line in zip(expected, words, strict=True))


def test_what_a_unit_said_counts_while_it_is_down_and_a_while_when_it_runs() -> None:
    def host(state: str) -> Host:
        return gpu_host(
            f"state\tkubelet {state} loaded",
            f"log\tkubelet {at(600, 'E1125 old')}",
            f"log\tkubelet {at(20, 'E1125 new')}",
            without=["state\tkubelet"],
        )

    assert host("active running success 0").log("kubelet") == ["E1125 new"]
    assert host("activating auto-restart exit-code 1").log("kubelet") == ["E1125 old", "E1125 new"]


def test_the_kernel_s_lines_have_the_time_of_their_host() -> None:
    host = gpu_host("kernel\t[89990.5] IPv4: martian source", "kernel\t[77.1] IPv4: martian source")
    assert [line.at for line in host.kernel("martian")] == [NOW - 9.5, NOW - 89922.9]
    assert len(host.kernel("martian", within_s=60)) == 1


def test_what_a_container_said_before_it_was_ready_again_is_over() -> None:
    site = cluster(
        pods=(pod("a"),), logs={"ml/a/main/previous": (at(5, "x"),), "ml/a/main": (at(500, "x"),)}
    )
    assert site.log(pod("a"), "x") == []
    assert site.log(pod("a", containers=()), "x") == ["x"]
    assert site.log_since_start(pod("a"), "x") == ["x"]


def test_a_line_of_a_key_is_hidden_behind_its_time() -> None:
    key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"
    mask = redaction.masker()
    assert mask(f"2026-11-25T06:53:07.230794270Z {key}") == "2026-11-25T06:53:07.230794270Z ***"
    assert mask(f"log\tkube-apiserver {_AT}{key}") == f"log\tkube-apiserver {_AT}***"
