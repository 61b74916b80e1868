"""The frame that tells a command's own lines from what a host's shell prints beside them."""

import importlib
import pkgutil
import subprocess
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra import logger
from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase
from pyinfra.api.host import Host
from pyinfra.connectors import util
from pyinfra.context import ctx_host

from deploys import engine, parts
from deploys.engine import privilege, shell
from deploys.engine.framed import Framed, OneLine
from deploys.parts.node.connectivity_fact import UnreachableEndpoints
from gpuboot.hosts.fact_output import FactOutputError, answer, framed
from tests.noise import NOISE, framed_lines, noisy


def run(script: str, input: str = "") -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", framed(script)]
    return subprocess.run(command, input=input, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("echo a; echo b", ["a", "b"]),
        ("printf 'no newline'", ["no newline"]),
        ("printf 'a\\n\\n\\n'", ["a", "", ""]),
        ("printf '\\n'", [""]),
        ("true", []),
        ("printf 'key\\tvalue\\twith tab\\n'", ["key\tvalue\twith tab"]),
        ("echo 'ä ☃'", ["ä ☃"]),
        # its own text may hold the mark: only the first one on a line counts
        ("echo '##gpuboot##=x ##gpuboot##.0 0'", ["##gpuboot##=x ##gpuboot##.0 0"]),
        ("echo a # a comment is last", ["a"]),
        ("cat <<EOF\na\nEOF", ["a"]),
    ],
)
def test_a_commands_own_lines_come_as_they_are(script: str, lines: list[str]) -> None:
    parsed = answer(run(script).stdout.splitlines())
    assert (parsed.lines, parsed.noise) == (lines, [])


@pytest.mark.parametrize("status", [0, 1, 3, 127])
def test_the_exit_status_is_the_commands(status: int) -> None:
    result = run(f"echo a; exit {status}")
    assert result.returncode == status
    assert answer(result.stdout.splitlines()).lines == ["a"]


@pytest.mark.parametrize(
    "lines",
    [[], [""], ["a", " b"], ["a", "", ""], ["", "a\nb"], ["ä ☃\tx"], ["##gpuboot##=x"], ["3"]],
)
def test_standard_input_reaches_the_command(lines: list[str]) -> None:
    """And fake hosts answer as a shell does."""
    text = "".join(f"{line}\n" for line in lines)
    result = run("cat", input=text)
    assert answer(result.stdout.splitlines()).lines == text.splitlines()
    assert framed_lines(lines) == result.stdout.splitlines()


def test_noise_is_told_apart_wherever_it_stands() -> None:
    parsed = answer(noisy(["uid\t0", "", "end\tok"]))
    assert parsed.lines == ["uid\t0", "", "end\tok"]
    assert set(parsed.noise) == {line for line in NOISE if line} | {"Last login: today"}


@pytest.mark.parametrize(
    "output",
    [
        [],
        ["*** Welcome ***"],
        framed_lines(["a", "b"])[:-1],
        framed_lines(["a", "b"])[1:],
        ["##gpuboot##=a", "##gpuboot##=b", "##gpuboot##.2 3"],  # one of them lost its end
    ],
)
def test_an_answer_that_is_not_whole(output: list[str]) -> None:
    with pytest.raises(FactOutputError):
        answer(output)


def every_fact() -> Iterator[type[FactBase[Any]]]:
    for package in (engine, parts):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and issubclass(value, FactBase):
                    yield value


def test_every_fact_runs_in_a_frame() -> None:
    facts = set(every_fact()) - {FactBase}
    assert len(facts) > 20
    assert [fact for fact in facts if not issubclass(fact, Framed)] == []


def test_a_shell_with_a_banner_reaches_everything() -> None:
    # `*** Welcome … ***` was taken for an address that does not answer
    assert UnreachableEndpoints().process(noisy(["mirror:443"])) == ["mirror:443"]
    assert UnreachableEndpoints().process(noisy([])[: -len(NOISE)] + framed_lines([])) == []


def test_no_line_of_its_own_is_the_facts_default() -> None:
    assert OneLine().process([*NOISE, *framed_lines([])]) == ""


def test_half_an_answer_is_no_fact() -> None:
    with pytest.raises(FactProcessError, match="not whole"):
        UnreachableEndpoints().process(NOISE)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    messages = []
    monkeypatch.setattr(shell, "_warned_hosts", set())
    monkeypatch.setattr(logger, "warning", lambda text, *words: messages.append(text % words))
    return messages


def test_the_noise_is_told_once_for_each_host(warnings: list[str]) -> None:
    for name in ("gpu1", "gpu1", "gpu2"):
        with ctx_host.use(SimpleNamespace(name=name, print_prefix=f"[{name}] ")):
            UnreachableEndpoints().process(noisy(["a:1"]))
            UnreachableEndpoints().process(framed_lines(["a:1"]))
    assert len(warnings) == 2
    assert warnings[0].startswith("[gpu1] its shell prints text beside every command")
    assert "*** Welcome to gpu1.example.com ***; remedy: let ~/.bashrc" in warnings[0]


class Machine:
    """A host whose shell greets everybody."""

    def __init__(self, ok: bool, lines: list[str], errors: Sequence[str] = ()) -> None:
        self._answer = (
            ok,
            SimpleNamespace(
                stdout_lines=lines, stderr_lines=list(errors), output="\n".join([*lines, *errors])
            ),
        )

        self.connector_data: dict[str, Any] = {}

    def run_shell_command(
        self, command: object, **arguments: object
    ) -> tuple[bool, SimpleNamespace]:
        return self._answer

    def get_temp_dir_config(self) -> str:
        return "/tmp"


def machine(ok: bool, lines: list[str], errors: Sequence[str] = ()) -> Host:
    return cast(Host, Machine(ok, lines, errors))


def test_commands_beside_facts_are_framed_as_well() -> None:
    assert shell.run_command(machine(True, noisy(["ours"])), "x").stdout == "ours"
    failed = shell.run_command(machine(False, noisy(["half"]), ["no such file"]), "x")
    assert (failed.ok, failed.output) == (False, "half\nno such file")
    cut = shell.run_command(machine(True, [], ["connection lost"]), "x")
    assert (cut.ok, cut.output) == (False, "connection lost")


def test_sudos_password_is_asked_for_behind_a_banner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "become_arguments", lambda host: {"_sudo_password": "secret"})
    host = machine(True, noisy(["/tmp/pyinfra-sudo-askpass-1"]))
    privilege.prepare_askpass(host)
    assert util._ensure_sudo_askpass_set_for_host(host) == "/tmp/pyinfra-sudo-askpass-1"
    monkeypatch.setattr(privilege, "become_arguments", lambda host: {"_sudo": True})
    without = machine(True, noisy([]))
    privilege.prepare_askpass(without)
    assert without.connector_data == {}


def test_commands_beside_operations_run_as_operations_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """By su and doas as well as by sudo, and in the site's environment."""
    data = {"_doas": True, "_env": {"SITE": "a"}, "_timeout": 5, "_sudo": False, "_su_user": None}
    monkeypatch.setattr(
        privilege, "pop_global_arguments", lambda state, host, arguments: (data, [])
    )
    assert privilege.become_arguments(machine(True, [])) == {"_doas": True, "_env": {"SITE": "a"}}
