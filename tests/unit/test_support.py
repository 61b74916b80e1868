"""Tables about others: each says when and where it was read, and none refuses what it lacks."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config import support, versions
from gpuboot.config.settings import SettingsError, kubelet, parse_settings
from gpuboot.config.support import Source
from gpuboot.monitoring.rules import xid

_ROOT = Path(__file__).parents[2]
_VERSION = re.compile(r"v?\d+\.\d+(\.\d+)?(-\d+)?")
# a version in a constant that is no table about others
_EXAMPLES = {"Version"}  # the form of a version, with an example
_TEXTS = {
    ".".join(path.relative_to(_ROOT).with_suffix("").parts): path.read_text()
    for folder in ("gpuboot", "deploys")
    for path in (_ROOT / folder).rglob("*.py")
}


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The names of a module's own constants, with what they are."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from ((ast.unparse(target), node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value:
            yield ast.unparse(node.target), node.value


_MODULES = [name for name, text in _TEXTS.items() if re.search(r"^SOURCE\b", text, re.MULTILINE)]
_SOURCES = {
    **{name: support.table(name) for name in support.names()},
    **{name: importlib.import_module(name).SOURCE for name in _MODULES},
    "kubelet.toml": kubelet.source(),
    "xid.toml": xid.source(),
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Moves the clock to a day."""
    return lambda day: monkeypatch.setattr(support, "today", lambda: date.fromisoformat(day))


def warnings(docker_hosts: bool = False, **version_tables: Any) -> str:
    settings = parse_settings({"versions": version_tables})
    return "\n".join(versions.warnings(versions.lock(settings), settings, docker_hosts))


@pytest.mark.parametrize("name", _SOURCES)
def test_every_table_says_when_and_where_it_was_read(name: str) -> None:
    table = _SOURCES[name]
    assert isinstance(table, Source)
    assert date(2026, 1, 1) < table.as_of <= support.today()
    assert table.source


def test_no_table_of_versions_is_without_a_date() -> None:
    undated = {
        f"{name}.{constant}": node.value
        for name, text in _TEXTS.items()
        if name not in _MODULES
        for constant, value in _constants(ast.parse(text))
        if constant not in _EXAMPLES
        for node in ast.walk(value)
        if isinstance(node, ast.Constant) and _VERSION.fullmatch(str(node.value))
        if isinstance(node.value, str)
    }
    assert not undated, "give the module a SOURCE: gpuboot/config/support.py"
    assert "gpuboot.cluster.version_skew" in _MODULES


@pytest.mark.parametrize(
    ("day", "text"),
    [
        ("2026-12-30", ""),
        ("2027-01-01", "support of driver 595 ends on 2027-03-31"),
        ("2027-04-01", "support of driver 595 ended on 2027-03-31"),
    ],
)
def test_the_end_of_support_is_told_three_months_before(
    clock: Callable[[str], None], day: str, text: str
) -> None:
    clock(day)
    lines = warnings(docker_hosts=True, driver={"version": "595.91.07"})
    assert lines.startswith(text) if text else not lines


def test_of_docker_hosts_kubernetes_is_not_told(clock: Callable[[str], None]) -> None:
    clock("2028-01-01")
    old = {"version": "1.36.6"}
    assert "support of kubernetes 1.36 ended on 2027-06-28" in warnings(kubernetes=old)
    assert "kubernetes" not in warnings(docker_hosts=True, kubernetes=old)


def test_of_a_driver_that_somebody_else_installs_nothing_is_told(
    clock: Callable[[str], None],
) -> None:
    clock("2027-12-01")
    settings = parse_settings({"driver": {"enabled": False}})
    assert not versions.warnings(versions.lock(settings), settings, docker_hosts=True)


@pytest.mark.parametrize(
    ("version_tables", "text"),
    [
        (
            {"kubernetes": {"version": "1.38.0"}},
            "gpu-operator 26.7.0 supports Kubernetes 1.33 to 1.37 by the table of "
            "NVIDIA/cloud-native-docs, gpu-operator/platform-support.rst with #488 and #490 "
            "(as of 2026-09-08, 100 days old), which does not know 1.38.0",
        ),
        (
            {"charts": {"gpu-operator": {"version": "v26.11.0"}}},
            "(as of 2026-09-08, 100 days old) does not know gpu-operator 26.11.0",
        ),
        (
            {"kubernetes": {"version": "1.38.0"}},
            "(as of 2026-10-13, 65 days old) does not know Kubernetes 1.38",
        ),
        (
            {"kubernetes": {"version": "1.37.2"}, "containerd": {"version": "2.2.9"}},
            "(as of 2026-10-13, 65 days old) recommends containerd 2.3 or newer for Kubernetes "
            "1.37, not 2.2.9",
        ),
        (
            {"driver": {"version": "610.57.04"}},
            "(as of 2026-11-09, 38 days old) does not know when support of driver 610 ends",
        ),
    ],
)
def test_what_a_table_does_not_know_is_a_warning_with_its_age(
    clock: Callable[[str], None], version_tables: dict[str, Any], text: str
) -> None:
    clock("2026-12-17")
    assert text in warnings(**version_tables)


def test_what_upstream_names_together_is_no_warning(clock: Callable[[str], None]) -> None:
    clock("2026-11-26")
    assert not warnings()
    assert not warnings(kubernetes={"version": "1.37.2"})


def test_what_upstream_has_dropped_is_refused_with_the_age_of_the_table(
    clock: Callable[[str], None],
) -> None:
    clock("2026-12-17")
    with pytest.raises(SettingsError, match=r"not 1\.32\.1 \(as of 2026-09-08, 100 days old\)"):
        versions.lock(parse_settings({"versions": {"kubernetes": {"version": "1.32.1"}}}))
