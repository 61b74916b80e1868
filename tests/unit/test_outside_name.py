"""Names beyond the cluster: pods and nodes resolve what the site pulls its images by."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.node.outside_name_fact import OutsideName
from gpuboot.config.settings import parse_settings
from gpuboot.verify import outside_name, service_probe
from gpuboot.verify.checks import service_checks
from gpuboot.verify.evidence import ServiceProbeResult
from gpuboot.verify.findings import Finding
from gpuboot.verify.service_probe import parse_log
from tests.unit.evidence import evidence, of, only
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import clock, run

__all__ = ["clock"]
NAME = "nvcr.io"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "nvcr.io"),
        ({"mirrors": {"images": {"nvcr.io": "https://mirror.lab/v2/nvcr.io"}}}, "mirror.lab"),
        ({"mirrors": {"images": {"*": "https://mirror.lab:5000"}}}, "mirror.lab"),
        ({"mirrors": {"images": {"*": "https://10.0.0.9:5000"}}}, ""),
        ({"mirrors": {"images": {"nvcr.io": "https://[fd00::9]:5000"}}}, ""),
        ({"verify": {"image": "10.0.0.9:5000/samples/vectoradd:1"}}, ""),
        ({"verify": {"image": "library/vectoradd"}}, "docker.io"),
        ({"proxy": {"http": "http://proxy.site.lan:3128"}}, "proxy.site.lan"),
        ({"proxy": {"https": "http://10.1.1.1:3128"}}, ""),
        ({"verify": {"outside_name": ""}}, ""),
        ({"verify": {"outside_name": "example.com."}}, "example.com"),
    ],
)
def test_the_name_is_the_site_s_registry(settings: dict[str, Any], name: str) -> None:
    assert outside_name.of_site(parse_settings(settings)) == name


def finding(answer: str, node: str, required: bool = False, name: str = NAME) -> Finding:
    """What is found on gpu1. + answer: of its pod; node: how the node resolves it"""
    item = ServiceProbeResult(
        node="gpu1", pod="p", name="kubernetes.default.svc", address="10.96.0.1:443",
        resolved=True, connected=True, outside=name, outside_answer=answer,
        outside_required=required,
    )  # fmt: skip
    observed = evidence(service_probes=(item,))
    [result] = service_checks.evaluate(replace(observed.hosts[0], outside=node), observed)
    return result


@pytest.mark.parametrize(
    ("answer", "node", "detail", "remedy"),
    [
        ("rcode 2", "resolved", "CoreDNS answers SERVFAIL", "Corefile"),
        ("rcode 5", "resolved", "CoreDNS answers REFUSED", "Corefile"),
        ("unresolved", "resolved", "nothing answers", "Corefile"),
        ("rcode 3", "resolved", "CoreDNS' servers know no nvcr.io (NXDOMAIN)", "Corefile"),
        ("rcode 3", "unresolved", "no such name as nvcr.io (NXDOMAIN)", "outside_name"),
        ("rcode 2", "unresolved", "the node itself does not resolve it either", "resolv.conf on"),
        ("resolved", "unresolved", "the node itself does not", "/etc/resolv.conf on gpu1"),
        ("rcode 2", "", "CoreDNS answers SERVFAIL", "Corefile"),
    ],
)
def test_each_fault_has_its_own_words(answer: str, node: str, detail: str, remedy: str) -> None:
    result = finding(answer, node)
    assert result.status == "fail"
    assert detail in result.detail
    assert remedy in result.remedy


def test_what_passes_says_what_was_asked() -> None:
    assert finding("resolved", "resolved").detail.endswith("; nvcr.io is resolved")
    assert "no name beyond the cluster" in finding("", "", name="").detail
    by_file = finding("rcode 3", "hosts-file")
    assert by_file.status == "pass"
    assert "/etc/hosts" in by_file.detail
    assert finding("rcode 3", "hosts-file", required=True).status == "fail"


def test_a_verification_fails_where_the_forwarder_is_broken() -> None:
    findings = list(run(FakeCluster(outside={"gpu2": "rcode 2"})).findings)
    failed = only(findings, "fail")
    assert (failed.link, failed.node) == ("services", "gpu2")
    assert [item.node for item in of(findings, "pass", "services")] == ["gpu1"]


def test_an_answer_that_is_missing_is_unknown() -> None:
    item = ServiceProbeResult(node="gpu1", pod="p", outside=NAME)
    log = "gpuboot-services: resolved\ngpuboot-services: connected\n"
    assert parse_log(item, log).error
    assert not parse_log(replace(item, outside=""), log).error
    assert parse_log(item, f"{log}gpuboot-services: outside rcode 3\n").outside_answer == "rcode 3"


@contextmanager
def name_server(rcode: int, questions: list[bytes]) -> Iterator[int]:
    """Answers each question with this code. Yields its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)

        def answer() -> None:
            question, client = server.recvfrom(512)
            questions.append(question)
            server.sendto(question[:2] + bytes((129, 128 + rcode)) + question[4:], client)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def probe_name(port: int, tmp_path: Path, name: str) -> str:
    """The script's answer, where no resolver knows the name and DNS is on this port."""
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("# written by the kubelet\nsearch a.b\nnameserver 127.0.0.1\n")
    getent = tmp_path / "getent"
    getent.write_text("#!/bin/sh\ncase $2 in kubernetes.) exit 0 ;; esac\nexit 2\n")
    getent.chmod(0o755)
    script = service_probe._SCRIPT.replace("/etc/resolv.conf", str(resolv))
    script = script.replace("$server/53", f"$server/{port}").replace("timeout 5", "timeout 2")
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = ["kubernetes.", "127.0.0.1", str(server.getsockname()[1])]
        result = subprocess.run(
            ["/bin/sh", "-c", script, "sh", *arguments, name, outside_name.query(name)],
            env={"PATH": f"{tmp_path}:{Path(str(shutil.which('bash'))).parent}:/usr/bin:/bin"},
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
    assert result.stderr == ""
    return result.stdout.splitlines()[-1].removeprefix("gpuboot-services: outside ")


@pytest.mark.parametrize("rcode", [2, 3, 5])
@pytest.mark.parametrize("name", ["nvcr.io", "kubernetes.tenletters.example"])
def test_the_script_tells_dns_own_word(rcode: int, name: str, tmp_path: Path) -> None:
    """A label of ten letters is a line feed to a shell that writes line by line."""
    questions: list[bytes] = []
    with name_server(rcode, questions) as port:
        assert probe_name(port, tmp_path, name) == f"rcode {rcode}"
    [question] = questions
    labels = b"".join(bytes((len(part),)) + part.encode() for part in name.split("."))
    assert question[12:] == labels + bytes((0, 0, 1, 0, 1))


def test_where_nothing_answers_the_script_says_so(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        assert probe_name(silent.getsockname()[1], tmp_path, NAME) == "unresolved"


@pytest.mark.parametrize(
    ("hosts", "code", "word"),
    [
        ("10.0.0.1 other nvcr.io\n", 0, "hosts-file"),
        ("# 10.0.0.1 nvcr.io\n10.0.0.1 nvcr.io.site\n", 0, "resolved"),
        ("", 2, "unresolved"),
    ],
)
def test_how_a_host_resolves_it(hosts: str, code: int, word: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(hosts)
    getent = tmp_path / "getent"
    getent.write_text(f"#!/bin/sh\nexit {code}\n")
    getent.chmod(0o755)
    fact = OutsideName()
    bare = fact.bare_command({"domain": NAME}).replace("/etc/hosts", str(tmp_path / "hosts"))
    result = subprocess.run(
        ["sh", "-c", bare], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert (result.stderr, fact.value(result.stdout.splitlines())) == ("", word)
