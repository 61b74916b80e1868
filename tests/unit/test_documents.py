"""Every command of the README and of docs/ is one that its program takes; every setting, ours."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from pyinfra_cli.cli import cli as pyinfra

from bench.cli import app as bench
from gpuboot.cli import app as gpuboot
from gpuboot.config.settings import parse_settings
from lab.cli import app as lab
from lab.cli import main
from lab.conformance.cli import app as conformance
from tests import tools
from tests.documents import ROOT, Command, commands, pages, settings, split
from tests.programs_of_others import OTHER_PROGRAMS, check_other, placeholder

MAIN_PROGRAMS = {"pyinfra", "gpuboot", "cp", "python", "pytest"}
SCRIPTS = {
    "scripts/lab",
    "scripts/bench",
    "scripts/test",
    "scripts/setup",
    "scripts/lint",
    "scripts/pages",
}
FILTERS = {"grep", "head", "tail", "sort", "wc"}  # behind a pipe, or found by the reader
PROGRAMS = MAIN_PROGRAMS | SCRIPTS | {name.split()[0] for name in OTHER_PROGRAMS}

GPUBOOT: Any = typer.main.get_command(gpuboot)
CONFORMANCE: Any = typer.main.get_command(conformance)
# program -> its commands, and the one that is meant without any
TYPERS: dict[str, tuple[Any, str]] = {
    "scripts/lab": (typer.main.get_command(lab), "up"),
    "scripts/bench": (typer.main.get_command(bench), "measure"),
}
COMMANDS = {command.words: command for command in commands(PROGRAMS)}


def parsed(command: Any, name: str, words: list[str]) -> dict[str, Any]:
    """What click makes of the words; a group's subcommand is followed down to the last.

    + command: click's own, or of the click that typer brings along
    """
    try:
        context = command.make_context(name, list(words))
        remaining = [*getattr(context, "_protected_args", []), *context.args]
        if not (getattr(command, "commands", None) and remaining):
            return dict(context.params)
        _, subcommand, remaining = command.resolve_command(context, remaining)
    except Exception as error:
        # both clicks' UsageError; its text alone says what is wrong
        if not hasattr(error, "format_message"):
            raise
        raise AssertionError(f"{name}: {error.format_message()}") from error
    return parsed(subcommand, f"{name} {subcommand.name}", remaining)


def named_only(group: Any, words: list[str]) -> bool:
    """A text that speaks of a subcommand without its arguments: "`gpuboot verify` says"."""
    return len(words) == 1 and words[0] in group.commands


def check_pyinfra(words: list[str]) -> None:
    words = [word for word in words if word != "…"]
    if words[0].startswith("-"):  # an example of options alone
        words = ["INVENTORY", "deploys/site.py", *words]
    parameters = parsed(pyinfra, "pyinfra", words)
    exists(parameters["inventory"])
    for operation in parameters["operations"]:
        exists(operation)
    for item in parameters["data"]:
        key = item.partition("=")[0]
        assert key in (ROOT / parameters["operations"][0]).read_text(), f"nobody reads {key}"


def check_gpuboot(words: list[str]) -> None:
    before = words[: words.index(">")] if ">" in words else words
    if named_only(GPUBOOT, before):
        return
    parameters = parsed(GPUBOOT, "gpuboot", before)
    if parameters.get("inventory"):
        exists(str(parameters["inventory"]))


def check_typer(words: list[str], program: str) -> None:
    group, unnamed = TYPERS[program]
    words = [word.strip("[]") for word in words]
    if not words or words[0].startswith("-"):
        words = [unnamed, *words]
    if not named_only(group, words):
        parsed(group, program, words)


def check_script(words: list[str], script: str) -> None:
    text = (ROOT / script).read_text()
    if words[:1] == ["--conformance"]:  # the options behind it are those of another program
        parsed(CONFORMANCE, script, words[1:])
        words = words[:1]
    for word in words:
        assert f"= {word} ]" in text or f"  {word}) " in text, f"{script} knows no {word}"


def check_cp(words: list[str]) -> None:
    source, target = words
    assert (ROOT / source).is_file()
    assert (ROOT / target).parent.is_dir()


def exists(path: str) -> None:
    """The file is here, the reader's own, or made by a `cp` of the pages."""
    copied = {words[2] for words in COMMANDS if words[0] == "cp"}
    site = re.fullmatch(r"inventories/(prod|site)\.py", path)
    assert placeholder(path) or path in copied or site or (ROOT / path).is_file(), path


@pytest.mark.parametrize("command", COMMANDS.values(), ids=str)
def test_a_command_of_the_pages_is_one(command: Command) -> None:
    program, *words = command.words
    if program in FILTERS:
        return
    if program == "pyinfra":
        check_pyinfra(words)
    elif program == "gpuboot":
        check_gpuboot(words)
    elif program in TYPERS:
        check_typer(words, program)
    elif program in SCRIPTS:
        check_script(words, program)
    elif program == "cp":
        check_cp(words)
    elif program == "pytest":
        places = [word for word in words if "/" in word]
        assert places
        assert all((ROOT / place).exists() for place in places), words
    elif program == "python":
        assert words[0] == "-m"
        assert (ROOT / f"{words[1].replace('.', '/')}/__main__.py").is_file()
    else:
        check_other(command.words)


def test_the_workflow_of_a_gpu_runner_is_one_that_runs() -> None:
    text = (ROOT / ".github/workflows/gpu-smoke.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"].values()
    lines = [
        line for job in jobs for step in job["steps"] for line in step.get("run", "").splitlines()
    ]
    run_count = 0
    for words in (words for line in lines for words in split(line)):
        program = words[0].removeprefix(".venv/bin/")
        arguments = words[1 : words.index(">")] if ">" in words else words[1:]
        if program in {"pyinfra", "gpuboot", "scripts/setup"}:
            test_a_command_of_the_pages_is_one(Command("gpu-smoke.yml", (program, *arguments)))
            run_count += 1
    assert run_count == len(lines) - 1  # python -c looks at the second run's output
    assert f"gpuboot_reset={parse_settings({}).cluster.name}" in text


def test_the_lab_s_help_names_the_options_of_its_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, parts in (
        (["--help"], ("--single", "--docker", "--previous-release", "--gpus")),
        (["fault", "--help"], ("set GPU KEY VALUE", "docs/lab.md")),
        (["ssh", "--help"], ("Log in to a machine",)),
    ):
        with pytest.raises(SystemExit) as exit_info:
            main(arguments)
        assert exit_info.value.code == 0
        text = " ".join(capsys.readouterr().out.split())
        assert all(part in text for part in parts), text


@pytest.mark.parametrize(
    "line",
    [
        "pyinfra INVENTORY deploys/site.py --drie",
        "pyinfra INVENTORY deploys/sites.py",
        "pyinfra INVENTORY deploys/reset.py --data gpuboot_rest=yes",
        "gpuboot prove INVENTORY",
        "gpuboot query pods NAME -n NAMESPACE",
        "scripts/lab --doker",
        "scripts/test --quick",
        "scripts/test --conformance --serial",
        "kubectl drain NODE --ignore-daemonset",
        "kubectl drian NODE",
        "cp inventories/examples.py inventories/prod.py",
    ],
)
def test_a_wrong_command_would_be_seen(line: str) -> None:
    (words,) = split(line)
    with pytest.raises(AssertionError):
        test_a_command_of_the_pages_is_one(Command("a page", words))


@cache
def help_of(program: str, words: tuple[str, ...]) -> str:
    result = subprocess.run([program, *words], capture_output=True, text=True, timeout=30)
    return result.stdout + result.stderr


@pytest.mark.parametrize("name", [name for name in OTHER_PROGRAMS if name.startswith("kubectl ")])
def test_the_table_s_options_are_kubectl_s(name: str) -> None:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not on this machine")
    words = tuple(name.split()[1:])
    text = help_of(program, (*words, "--help")) + help_of(program, ("options",))
    for option in OTHER_PROGRAMS[name].split():
        assert re.search(rf"(^|\s){re.escape(option.rstrip('='))}[,= ]", text, re.MULTILINE), option


@pytest.mark.parametrize("name", [name for name in OTHER_PROGRAMS if name.startswith("amtool ")])
def test_the_table_s_options_are_amtool_s(name: str) -> None:
    text = help_of(str(tools.amtool()), (*name.split()[1:], "--help"))
    assert "unexpected" not in text
    for option in OTHER_PROGRAMS[name].split():
        assert option in text, option


@pytest.mark.parametrize(("page", "source"), settings())
def test_settings_of_the_pages_are_taken(page: str, source: str) -> None:
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "gpuboot":
            parse_settings(ast.literal_eval(node.value))
            return
    pytest.fail(f"{page}: a block that assigns nothing")


def test_python_of_the_pages_imports_what_exists() -> None:
    lines = [
        line.strip()
        for page in pages()
        for line in page.read_text().splitlines()
        if re.match(r" *(from|import) gpuboot\b", line)
    ]
    assert lines
    for line in lines:
        exec(line, {})  # our own pages


def test_the_pages_have_commands_and_settings() -> None:
    assert {"scripts/lab", "pyinfra", "gpuboot", "kubectl", "nvidia-smi"} <= {
        w[0] for w in COMMANDS
    }
    assert len(settings()) >= 4


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs"]
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    base = ROOT / page
    for file in [base] if base.is_file() else sorted(base.rglob("*.md")):
        text = re.sub(r"`[^`]*`", "", file.read_text())
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target and not target.startswith("mailto:"):
                assert (Path(file.parent) / target).exists(), f"{file}: {target}"
