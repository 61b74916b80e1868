"""Every module of gpuboot and deploys can be imported alone, before any other one.

Where no module leads back to itself (`test_structure.py`), alone and behind others is the same: so
one process imports all of them. What no import statement shows is imported alone indeed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_structure import FINDER, ROOT, modules

OWN_MODULES = {
    name: path for name, path in modules().items() if name.startswith(("gpuboot", "deploys"))
}
# pyinfra runs these: to import one is to run it
DEPLOYS = {f"deploys.{path.stem}" for path in (ROOT / "deploys").glob("*.py")}
STANDALONE = sorted(
    name
    for name, path in OWN_MODULES.items()
    if ".checks.of_" in name or (FINDER in path.read_text() and path.name != "__init__.py")
)
IMPORT = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}")
"""


def errors(*names: str, folder: Path = ROOT) -> str:
    """What goes wrong when these are imported, one after the other, in a process of their own."""
    command = [sys.executable, "-W", "ignore", "-c", IMPORT, *names]
    result = subprocess.run(
        command, env={"PYTHONPATH": str(folder)}, text=True, capture_output=True, check=True
    )
    return result.stdout


def test_every_module_can_be_imported() -> None:
    assert errors(*sorted(set(OWN_MODULES) - DEPLOYS)) == ""


@pytest.mark.parametrize("name", STANDALONE)
def test_what_is_found_by_the_names_of_files_can_be_imported_alone(name: str) -> None:
    assert errors(name) == ""


def test_a_module_that_leads_back_to_itself_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from b import x\ny = 1\n")
    (tmp_path / "b.py").write_text("from a import y\nx = 1\n")
    assert "partially initialized module 'a'" in errors("a", folder=tmp_path)
