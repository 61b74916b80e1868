"""The wheel has what a run needs, and no more; a site works in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.documents import ROOT

_FOLDER = """
from pathlib import Path
import deploys, gpuboot
from gpuboot.config.project_files import link_project
assert Path(gpuboot.__file__).is_relative_to(INSTALLED), gpuboot.__file__
assert Path(deploys.__file__).is_relative_to(INSTALLED), deploys.__file__
link_project(Path.cwd())
"""
_INVENTORY = """
control_plane = [("cp1", {"ssh_hostname": "127.0.0.1", "ssh_port": 1, "gpuboot": {}})]
workers = []
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _python("-m", "pip", "-q", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder),
            str(ROOT))  # fmt: skip
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_has_the_project_s_files_and_nothing_of_its_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    folders = {name.split("/")[0] for name in names}
    assert {name for name in folders if not name.endswith(".dist-info")} == {"gpuboot", "deploys"}
    tracked = subprocess.run(["git", "ls-files", "gpuboot", "deploys", "templates"], cwd=ROOT,
                             capture_output=True, text=True, check=True)  # fmt: skip
    expected = {
        f"gpuboot/project/{name}" if name.startswith("templates/") else name
        for name in tracked.stdout.split()
        if (ROOT / name).exists()
    }
    assert expected - names == set()


def test_a_run_from_the_wheel_in_an_empty_folder_reaches_for_the_hosts(
    wheel: Path, tmp_path: Path
) -> None:
    installed, site = tmp_path / "installed", tmp_path / "site"
    _python("-m", "pip", "-q", "install", "--no-deps", "--no-index", "--target", str(installed),
            str(wheel))  # fmt: skip
    (site / "inventories").mkdir(parents=True)
    (site / "inventories/prod.py").write_text(_INVENTORY)
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    code = _FOLDER.replace("INSTALLED", repr(str(installed)))
    _python("-c", code, cwd=site, env=environment)
    run = subprocess.run(
        [sys.executable, "-m", "pyinfra", "inventories/prod.py", "deploys/site.py", "--dry"],
        cwd=site, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    output = run.stdout + run.stderr
    assert run.returncode == 1, output
    assert "cp1" in output
    assert "127.0.0.1" in output
    assert "Traceback" not in output


def _python(*arguments: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    subprocess.run([sys.executable, *arguments], cwd=cwd, env=env, check=True)
