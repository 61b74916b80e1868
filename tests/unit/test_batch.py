"""Many facts of a host by one command, as a shell runs it."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import FactProcessError
from pyinfra.connectors.util import make_unix_command
from typing_extensions import override

from deploys.engine.batch import Batch, Request, Unanswered, parts
from deploys.engine.framed import Framed, OneLine
from deploys.parts.cluster.fact import Cluster, PodIssues
from deploys.parts.cluster.objects_fact import Managed
from deploys.parts.files.fact import Files, FileState
from deploys.parts.kernel.fact import Kernel
from gpuboot.hosts.fact_output import answer
from tests.cluster_answers import served


class EchoFact(OneLine):
    """What a shell command prints first."""

    @override
    def command(self, script: str) -> str:
        return script


class OfCluster(EchoFact):
    """The same, of a command that asks the API server."""

    of_cluster = True


class Lines(Framed[list[str]]):
    """All lines that a shell command prints."""

    default = list

    @override
    def command(self, script: str) -> str:
        return script

    @override
    def process(self, output: list[str]) -> list[str]:
        return output


def request(fact: type[Framed[Any]], **arguments: Any) -> Request:
    created = Request.of(fact, arguments)
    assert created
    return created


def answers_of(*requests: Request) -> tuple[list[Any], str]:
    """The answers, and the command that gave them."""
    batch = Batch()
    command = batch.command(requests=requests)
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    return batch.process(result.stdout.splitlines()), command


def echo_request(script: str) -> Request:
    return request(EchoFact, script=script)


def test_each_fact_has_its_answer_in_order() -> None:
    answers, _ = answers_of(
        echo_request("echo a"), request(Lines, script="printf 'b\\n\\nc'"), echo_request("true")
    )
    assert answers == ["a", ["b", "", "c"], ""]


@pytest.mark.parametrize("script", ["cd /; x=1; exit 0", "trap 'echo gone' EXIT", "set -e"])
def test_a_command_changes_nothing_for_the_next(script: str) -> None:
    answers, _ = answers_of(echo_request(script), echo_request('echo "$PWD ${x:-}"'))
    assert answers[1] == str(Path.cwd())


def test_one_that_fails_keeps_the_answers_of_the_others() -> None:
    answers, _ = answers_of(echo_request("echo a; exit 3"), echo_request("echo b"))
    assert isinstance(answers[0], Unanswered)
    assert "ended with 3" in str(answers[0])
    assert answers[1] == "b"


def test_requests_that_can_be_merged_are_one_command(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a b", "c", "none")]
    for path in paths[:2]:
        Path(path).write_text(path)
        Path(path).chmod(0o640)
    answers, command = answers_of(
        request(Files, paths=paths[:1]),
        echo_request("echo between"),
        request(Files, paths=paths[:2]),
        request(Files, paths=paths[2:]),
    )
    first, second = [
        {path: FileState("640", hashlib.sha256(path.encode()).hexdigest())} for path in paths[:2]
    ]
    assert answers == [first, "between", first | second, {}]
    assert command.count("sha256sum") == 1


def test_what_asks_the_cluster_runs_beside_the_rest(tmp_path: Path) -> None:
    marker = tmp_path / "asked"
    wait = f"for try in 1 2 3 4 5 6 7 8 9; do test ! -e {marker} || break; sleep 0.2; done"
    answers, command = answers_of(
        request(OfCluster, script=f"touch {marker}; echo one"),
        echo_request(f"{wait}; ls {tmp_path}"),
        request(OfCluster, script="echo two; exit 3"),
    )
    assert answers[:2] == ["one", "asked"]
    assert "ended with 3" in str(answers[2])
    lane = subprocess.run(
        ["sh", "-c", command.replace('cat "$lane"', 'cat "$lane"; ls -l "$lane" >&2', 1)],
        capture_output=True,
        text=True,
        check=True,
    ).stderr.split()
    assert lane[0] == "-rw-------"
    assert not Path(lane[-1]).exists()


def test_half_an_answer_is_none() -> None:
    batch = Batch()
    result = subprocess.run(
        ["sh", "-c", batch.command(requests=[echo_request("echo a"), echo_request("echo b")])],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = result.stdout.splitlines()
    with pytest.raises(FactProcessError):
        batch.process(lines[:-1])
    assert answer(lines).lines


def test_what_a_hosts_shell_prints_is_no_answer() -> None:
    batch = Batch()
    result = subprocess.run(
        ["sh", "-c", f"echo Welcome; {batch.command(requests=[echo_request('echo a')])}; echo Bye"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert batch.process(result.stdout.splitlines()) == ["a"]


def test_the_kernels_settings_are_whole() -> None:
    keys = ["fs.inotify.max_user_watches", "net.ipv4.ip_local_port_range", "gpuboot.none"]
    [state], _ = answers_of(request(Kernel, sysctls=keys))
    expected = {
        key: path.read_text().strip()
        for key in keys
        if (path := Path("/proc/sys", *key.split("."))).exists()
    }
    assert len(expected) > 0
    assert state.sysctls == expected


def test_the_longest_batch_fits_into_the_one_argument_that_a_shell_gets() -> None:
    """Linux: MAX_ARG_STRLEN, 131,072 bytes with the zero at the end."""
    script = "printf '%s' \"it's\"; # " + "x" * 950 + " {}"
    requests = [request(EchoFact, script=script.format(number)) for number in range(250)]
    batches = [Batch().command(requests=part) for part in parts(requests)]
    assert len(batches) > 2
    answered = 0
    for command in batches:
        as_root = make_unix_command(StringCommand(command), _sudo=True, _sudo_user="root")
        assert len(as_root.get_raw_value()) < 131_072
        result = subprocess.run(["sh", "-c", command], capture_output=True, check=True)
        answered += result.stdout.count(b"it's")
    assert answered == 250


def test_an_api_server_that_does_not_answer_is_asked_once(tmp_path: Path) -> None:
    with served(tmp_path, {}) as host:
        pass
    kubeconfig = str(host.kubeconfig)
    facts = (
        request(Cluster, kubeconfig=kubeconfig),
        request(PodIssues, kubeconfig=kubeconfig),
        request(Managed, kubeconfig=kubeconfig),
    )
    batch = Batch()
    result = host.run(str(batch.command(facts)))
    cluster, _, managed = batch.process(result.stdout.splitlines())
    assert cluster.error == managed.error
    assert "curl: (7)" in cluster.error
    assert host.log.read_text().count("/urls") == 1
