"""docs/development.md is true: its folders, phases, paths, names and recipes."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from gpuboot.config.settings import Settings, SettingsError, parse_settings
from gpuboot.config.settings.messages import _removed
from gpuboot.docs.settings_page import models
from gpuboot.hosts import platforms, prerequisites
from lab.build.base import INCLUDE, MIRRORED
from tests.documents import ROOT
from tests.unit import settings_reads

PAGE = (ROOT / "docs" / "development.md").read_text()
# whose folders are rooms that a newcomer looks for
HOUSES = ("gpuboot", "deploys", "lab", "tests")
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|md|toml))`")
NAME = re.compile(r"`((?:[A-Z][a-z]+){2,}|[a-z_]+\(\))`")


@cache
def tracked() -> frozenset[str]:
    """Every file of the repository, new ones included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return frozenset(name for name in result.stdout.splitlines() if (ROOT / name).exists())


def section(title: str) -> str:
    """What stands below a heading, up to the next of its rank."""
    rank = title.split()[0]
    return re.split(rf"^{rank} ", PAGE.split(f"{title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(text: str) -> set[str]:
    """What is in backquotes in the first cell of each row."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return {name for cell in rows for name in re.findall(r"`([^`]+)`", cell)}


def folders() -> Iterator[str]:
    """The folders that the map has to name, and gpuboot's loose modules."""
    for name in tracked():
        top, *parts = name.split("/")
        if not parts or top.startswith("."):
            continue
        yield f"{top}/"
        if top in HOUSES and len(parts) > 1:
            yield f"{top}/{parts[0]}/"
        elif top == "gpuboot" and parts[0] != "__init__.py":
            yield name


def test_every_folder_is_in_the_map_and_nothing_else() -> None:
    # of tests/ only the kinds of tests: the folder itself says nothing
    assert first_cells(section("## The folders")) | {"tests/"} == set(folders())


@pytest.mark.parametrize("path", sorted(set(PATH.findall(PAGE))))
def test_a_path_of_the_page_exists(path: str) -> None:
    place = ROOT / path
    if re.fullmatch(r"[A-Z.]+(\.py)?", place.name) and place.suffix != ".md":  # the reader's own
        place = place.parent
    assert place.exists() or (ROOT / "docs" / path).exists()


@pytest.mark.parametrize("name", sorted(set(NAME.findall(PAGE))))
def test_a_name_of_the_page_is_defined(name: str) -> None:
    defined = re.compile(rf"^(class|def) {name.removesuffix('()')}\b", re.MULTILINE)
    assert any(
        defined.search((ROOT / file).read_text()) for file in tracked() if file.endswith(".py")
    )


def test_the_page_of_the_engine_names_its_modules() -> None:
    page = (ROOT / "docs" / "engine.md").read_text()
    modules = {path.stem for path in (ROOT / "deploys" / "engine").glob("*.py")}
    assert first_cells(page.split("## Its modules\n")[1]) == modules - {"__init__"}


def called_phases(deploy: str) -> set[str]:
    """The phases that a deploy calls, one after the other."""
    body = ast.parse((ROOT / "deploys" / deploy).read_text()).body
    calls = (node.value for node in body if isinstance(node, ast.Expr))
    return {
        call.func.id
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args
    }


def test_every_phase_is_described() -> None:
    phases = called_phases("site.py") | called_phases("standalone.py")
    assert len(phases) > 10
    assert first_cells(section("## How a value flows")) == phases


def test_the_host_layers_are_phases_of_the_site() -> None:
    layers = called_phases("host_layers.py")
    expected_layers = {
        "preflight",
        "base",
        "packages",
        "node_upgrades",
        "drivers",
        "dcgm",
        "runtime",
        "kubernetes",
    }
    assert expected_layers == layers < called_phases("site.py")


@dataclass(frozen=True)
class Setting:
    """A setting's meaning, its model, and the section that has it, as templates name it."""

    meaning: str
    model: str
    section: str


def settings(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """Every setting by its path; a section's meaning is that of its model."""
    for name, info in model.model_fields.items():
        inner = models(info.annotation)
        meaning = info.description or ("" if prefix else section_meaning(inner))
        yield f"{prefix}{name}", Setting(meaning, model.__name__, prefix.split(".")[-2:][0])
        for inner_model in inner:
            yield from settings(inner_model, f"{prefix}{name}.")


def section_meaning(models: list[type[BaseModel]]) -> str:
    return (models[0].__doc__ or "") if models else ""


SETTINGS = dict(settings(Settings))


@cache
def read_fields() -> frozenset[settings_reads.Field]:
    """What Python reads of the settings' models, by the models' and the fields' names."""
    names = (name for name in tracked() if name.startswith(("gpuboot/", "deploys/")))
    return frozenset(
        settings_reads.fields_read(ROOT, (name for name in names if name.endswith(".py")))
    )


@cache
def templates() -> str:
    files = (name for name in tracked() if name.startswith("templates/"))
    return "\n".join((ROOT / name).read_text(errors="ignore") for name in files)


@cache
def words(*places: str) -> frozenset[str]:
    """Every identifier and every word of texts below these folders."""
    files = (name for name in tracked() if name.startswith(places))
    texts = (
        (ROOT / name).read_text(errors="ignore")
        for name in files
        if not name.startswith("gpuboot/config/settings/")
    )
    return frozenset(word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text))


@pytest.mark.parametrize("path", SETTINGS)
def test_a_setting_is_described_read_and_tested(path: str) -> None:
    setting, name = SETTINGS[path], path.rpartition(".")[2]
    assert setting.meaning, f"{path} has no description: add it to the field of {setting.model}"
    by_template = re.search(rf"\b{setting.section}\.{name}\b", templates())
    assert (setting.model, name) in read_fields() or by_template, (
        f"no code in gpuboot/ or deploys/ and no template reads {path}: use it through a variable "
        f"or parameter that is annotated with {setting.model} or a model above it, or remove it"
    )
    assert name in words("tests/"), (
        f"no file below tests/ names {name}: add a test of what {path} changes to tests/unit/"
    )


@pytest.mark.parametrize("path", [path.replace("*", "vision") for path in _removed()])
def test_a_setting_that_was_removed_is_refused_with_what_is_instead(path: str) -> None:
    *sections, name = path.split(".")
    settings: Any = {name: "1"}
    for section in reversed(sections):
        settings = {section: settings}
    with pytest.raises(SettingsError, match=rf"{re.escape(path)} was removed: "):
        parse_settings(settings)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("settings.monitoring.retention", {("Monitoring", "retention")}),
        ("context.settings.verify.deep.parallel", {("Deep", "parallel")}),
        ("(lambda storage: storage.path)(settings.monitoring.storage)", set()),
        ("monitoring.retention", set()),  # of what, nobody knows
        ("print('settings.monitoring.retention', 'retention')", set()),
    ],
)
def test_a_read_is_of_the_whole_path(line: str, fields: set[settings_reads.Field]) -> None:
    read = settings_reads.Reads(settings_reads.all_models(), line).fields
    sections = {("Settings", "monitoring"), ("Settings", "verify"), ("Verify", "deep")}
    assert read - sections - {("Monitoring", "storage")} == fields


@pytest.mark.parametrize(
    "function",
    [
        "def f(storage: Storage) -> str: return storage.path",
        "def f(monitoring: Monitoring | None) -> str:\n    a = monitoring.storage\n    a.path",
        "class C:\n    def __init__(self): self._a = settings.monitoring\n"
        "    def f(self): return self._a.storage.path",
    ],
)
def test_a_read_is_followed_through_names(function: str) -> None:
    reads = settings_reads.Reads(settings_reads.all_models(), function)
    assert ("Storage", "path") in reads.fields


def always_acts(folder: str) -> bool:
    """An operation that a phase calls only when there is something to do."""
    module, _, name = folder.rpartition(".")
    text = (ROOT / "deploys" / "parts" / f"{module.replace('.', '/')}.py").read_text()
    return f"@operation(is_idempotent=False, compared=False)\ndef {name}(" in text


def test_every_operation_has_a_case_in_which_nothing_is_done() -> None:
    for folder in sorted((ROOT / "tests" / "operations").iterdir()):
        if always_acts(folder.name):
            continue
        cases = [case.read_text() for case in folder.glob("*.yaml")]
        idle = any(re.search(r"^commands: *\[\]", case, re.MULTILINE) for case in cases)
        assert idle, folder.name


def test_every_platform_is_tested_and_named_to_its_users() -> None:
    readme = (ROOT / "README.md").read_text()
    tests = (ROOT / "tests" / "unit" / "test_platforms.py").read_text()
    for platform in platforms.PLATFORMS:
        assert re.search(rf"{platform.version}\b", readme), platform.name
        row = rf'"{platform.id}", "{platform.version}(\.\d+)?", "{platform.cuda}"'
        assert re.search(row, tests), platform.name


def test_the_lab_offers_what_every_host_gets() -> None:
    assert set(prerequisites.KUBERNETES) <= {*MIRRORED, *INCLUDE.split(",")}


def test_recipes_are_there_for_what_people_add() -> None:
    recipes = re.findall(r"^### (.+)$", section("## Recipes"), re.MULTILINE)
    assert recipes == ["A setting", "A phase", "An alert", "A field of DCGM",
                       "A check of hosts",
                       "A check of the cluster", "A check of the chain",
                       "A cause that diagnose names", "A platform", "A fault of the lab",
                       "A version"]  # fmt: skip
    for recipe in recipes:
        assert "Held by:" in section(f"### {recipe}"), recipe


def test_a_test_of_each_kind_can_be_run() -> None:
    commands = re.findall(r"`pytest [^`]*?(tests/[\w./]+)", PAGE)
    assert all((ROOT / path).exists() for path in commands)
    named_kinds = {Path(path).parts[1] for path in commands}
    kinds = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))}
    assert kinds <= named_kinds


def test_the_changelog_has_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert (
        re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)[0] == version
    )
