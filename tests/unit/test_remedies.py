"""Every command of a remedy is one that its program takes, with a sighting's values filled in."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from functools import cache

import pytest

from tests.documents import ROOT, Command, split
from tests.programs_of_others import ALL
from tests.unit.diagnose_site import Case, findings
from tests.unit.test_diagnose import CASES
from tests.unit.test_documents import PROGRAMS, help_of, test_a_command_of_the_pages_is_one

_REDIRECTION = re.compile(r"^\d?[<>]")
_COUNT = re.compile(r"^-\d+$")
# what takes any words, and our own, which a text may name without what they need
_FREE = {"cp", "gpuboot", "pyinfra"}
_SILENT = {"uniq", "xargs"}
# what names a deploy that is run, and what it is given
_DEPLOY = re.compile(r"deploys/(\w+)\.py")
_RUN = re.compile(r"pyinfra INVENTORY (?:[^\s;,)`\"]+ ?)+")
_CONFIRMED = {"reset", "remove"}


def commands(text: str) -> Iterator[tuple[str, ...]]:
    """The programs that a line of a shell runs, on other machines and behind xargs as well."""
    for words in split(text):
        words = tuple(word for word in words if not _REDIRECTION.match(word))
        if words[0] in {"ssh", "xargs"}:
            options = 1 if words[1].startswith("-") else 0
            inner = words[1 + options + (words[0] == "ssh") :]
            yield from split(" ".join(inner))
        if words[0] not in _SILENT:
            yield words


def checked(page: str, words: tuple[str, ...]) -> None:
    test_a_command_of_the_pages_is_one(
        Command(page, tuple(word for word in words if not _COUNT.match(word)))
    )


def all_checked(page: str, text: str) -> int:
    """How many commands there are, all of them right."""
    parsed_commands = list(commands(text))
    for words in parsed_commands:
        checked(page, words)
    return len(parsed_commands)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_cause_s_command_is_one(case: Case) -> None:
    finding = next(item for item in findings(case.broken) if item.cause.id == case.id)
    assert finding.commands("cp1")
    for _, text in finding.commands("cp1"):
        assert "{" not in re.sub(r"-o jsonpath=\S+|%\{http_code\}|-exec .* \{\} \+", "", text)
        assert all_checked(case.id, text)


@pytest.mark.parametrize(
    "text",
    [
        "kubectl -n ml lgos train-0",
        "kubectl logs train-0 --previos",
        "ssh gpu1 sudo nvidia-ctk system make-links",
        "sudo systemctl restrat kubelet",
        "sudo crictl pods -q | xargs -r sudo crictl remove",
        "pyinfra INVENTORY deploys/removal.py --data gpuboot_remove=gpu1",
        "pyinfra INVENTORY deploys/remove.py --data gpuboot_node=gpu1",
    ],
)
def test_a_wrong_command_would_be_seen(text: str) -> None:
    with pytest.raises(AssertionError):
        all_checked("a remedy", text)


@cache
def texts() -> list[tuple[str, str]]:
    """(place, text) of every string of the source but docstrings; values in them are VALUE."""
    return [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for folder in ("gpuboot", "deploys")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in _strings(ast.parse(path.read_text(encoding="utf-8")))
    ]


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    for item in ast.iter_child_nodes(node):
        is_docstring = isinstance(node, ast.Expr) and isinstance(item, ast.Constant)
        if (text := _text(item)) and not is_docstring:
            yield getattr(item, "lineno", 0), text
        if not isinstance(item, ast.JoinedStr):
            yield from _strings(item)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(item.value) if isinstance(item, ast.Constant) else _constant(item)
            for item in node.values
        )
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


_PHRASES = {"_RESET": "pyinfra INVENTORY deploys/reset.py --data gpuboot_reset=CLUSTER",
        "_REMOVE": "pyinfra INVENTORY deploys/remove.py --data gpuboot_remove="}  # fmt: skip


def _constant(item: ast.AST) -> str:
    """A value in a text: one of a module's own constants, or VALUE."""
    name = (
        item.value.id
        if isinstance(item, ast.FormattedValue) and isinstance(item.value, ast.Name)
        else ""
    )
    return _PHRASES.get(name, "VALUE")


DEPLOYS = [(place, text) for place, text in texts() if _DEPLOY.search(text)]


@pytest.mark.parametrize(("place", "text"), DEPLOYS, ids=lambda item: item.split("\n")[0][:60])
def test_a_deploy_that_a_text_names_is_there_and_reads_what_it_is_given(
    place: str, text: str
) -> None:
    for name in _DEPLOY.findall(text):
        assert (ROOT / f"deploys/{name}.py").is_file(), f"{place}: {name}"
    for command in _RUN.findall(text):
        for words in split(command.rstrip(" .:")):
            checked(place, tuple("X" if word == "VALUE" else word for word in words))


INLINE = sorted(
    {
        (place, words)
        for place, text in texts()
        for match in re.finditer(r"`([^`\n]+)`", text)
        for words in split(match[1], loose=True)
        if words[0] in PROGRAMS - _FREE and len(words) > 1
    }
)


@pytest.mark.parametrize(("place", "words"), INLINE, ids=str)
def test_a_command_in_a_text_is_one(place: str, words: tuple[str, ...]) -> None:
    checked(place, tuple(word.replace("VALUE", "x") for word in words))


def test_what_destroys_is_named_with_its_confirmation() -> None:
    for place, text in DEPLOYS:
        for name in set(_DEPLOY.findall(text)) & _CONFIRMED:
            confirmed = f"--data gpuboot_{name}=" in text
            # of how a run is told from others, and of what a run writes about itself
            internal = text in {f"{name}.py", f"deploys/{name}.py"}
            assert confirmed or internal, f"{place}: {text}"


@pytest.mark.parametrize(
    "name", ["journalctl", "findmnt", "df", "du", "ss", "ps", "systemctl show"]
)
def test_the_table_s_options_are_those_of_the_program(name: str) -> None:
    program = shutil.which(name.split()[0])
    if program is None:
        pytest.skip(f"{name} is not on this machine")
    text = help_of(program, ("--help", "all") if name == "ps" else ("--help",))
    for option in ALL[name].split():
        for letter in (
            [option] if option.startswith("--") else [f"-{character}" for character in option[1:]]
        ):
            assert re.search(rf"(?<![\w-]){re.escape(letter.rstrip('='))}(?![\w-])", text) or (
                letter == "-="
            ), f"{name} {letter}"
