"""Wrong inventories, files and options, as a person gives them: one answer, before any host is
connected to, without a traceback and without a secret."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.inputs.command_line import ROOT, WORD, Completed, project, pyinfra
from tests.inputs.wrong_inventories import GOOD, INVENTORY, WRONG_INVENTORIES, ssh

SITE = str(ROOT / "deploys" / "site.py")


def answer(result: Completed) -> str:
    assert result.code == 1, result.output
    for never in ("Traceback", "bug report", "continue?", "Beginning operation", WORD):
        assert never not in result.output, result.output
    assert "remedy: " in result.output
    return result.output


@pytest.mark.parametrize("case", WRONG_INVENTORIES)
def test_one_answer_before_any_host_is_connected_to(case: str, tmp_path: Path) -> None:
    files, expected = WRONG_INVENTORIES[case]
    result = pyinfra(project(tmp_path, files), [INVENTORY, SITE, "--dry"])
    output = answer(result)
    assert expected in output, output
    assert "nothing was changed" in output
    assert "Connected" not in output
    assert output.count("remedy: ") == int(output.partition(" problem")[0].split()[-1])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nosuch.py"], "there is no inventory file nosuch.py"),
        (["inventories/exmaple.py"], "did you mean inventories/example.py?"),
        (["example"], "did you mean inventories/example.py?"),
        (["exmaple"], "did you mean inventories/example.py?"),
        (["inventories"], "inventories is a folder"),
        ([INVENTORY, "--limit", "gpu7"], "--limit and --exclude leave no host"),
        ([INVENTORY, "--exclude", "workers", "--exclude", "control_plane"], "leave no host"),
    ],
)
def test_an_inventory_that_is_none(arguments: list[str], expected: str, tmp_path: Path) -> None:
    inventory, *options = arguments
    folder = project(tmp_path, {INVENTORY: GOOD})
    assert expected in answer(pyinfra(folder, [inventory, SITE, "--dry", *options]))


@pytest.mark.parametrize("options", [[], ["-y"], ["--dry"], ["-y", "--fail-percent", "0"]])
def test_hosts_that_cannot_be_reached_are_told_at_once(options: list[str], tmp_path: Path) -> None:
    leader = ssh("cp1").replace("workers", "control_plane").replace("127.0.0.1", "no.such.invalid")
    files = {INVENTORY: leader.partition("\n")[2] + ssh("gpu1").partition("\n")[2]}
    output = answer(pyinfra(project(tmp_path, files), [INVENTORY, SITE, *options]))
    assert "2 problems; nothing was changed" in output
    for host in ("127.0.0.1", "no.such.invalid"):
        assert f"[{host}] cannot be reached: " in output


def test_one_host_that_cannot_be_reached_stands_beside_the_others_problems(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "plan" / "inventories", tmp_path / "plan")
    text = (
        'import os, runpy\nos.environ["PLAN_BREAKAGE"] = \'{"gpu1": ["cgroup 1"]}\'\n'
        '_site = runpy.run_path("plan/site.py")\n_data = _site["_data"]\n'
        'control_plane = _site["control_plane"]\n'
        "workers = (_site['workers'][0] + [('127.0.0.1', {'node_name': 'gpu2', 'address': "
        "'192.0.2.99', 'ssh_port': 1, 'ssh_connect_retries': 0})], _data)\n"
    )
    output = answer(pyinfra(project(tmp_path, {INVENTORY: text}), [INVENTORY, SITE]))
    assert "[127.0.0.1] cannot be reached: " in output
    assert "[@fake/gpu1] it uses cgroup v1" in output
    assert output.count("cannot be reached") == 1


def test_a_question_that_nobody_can_answer_ends_the_run(tmp_path: Path) -> None:
    files = {
        INVENTORY: GOOD,
        "tiny.py": "from pyinfra.operations import server\n\n"
        "server.shell(name='Say', commands=['true'])\n",
    }
    output = answer(pyinfra(project(tmp_path, files), [INVENTORY, "tiny.py"]))
    assert "standard input is no terminal" in output
    assert "run with -y" in output


def test_a_failed_host_is_no_question_without_a_terminal(tmp_path: Path) -> None:
    files = {
        INVENTORY: "one = [('@fake/a', {'fake_responses': {'boom': {'success': False}}}), "
        "'@fake/b']\n",
        "tiny.py": "from pyinfra.operations import server\n\n"
        "server.shell(name='Fail', commands=['boom'])\n",
    }
    result = pyinfra(project(tmp_path, files), [INVENTORY, "tiny.py"], answers="\n")
    assert result.code == 1, result.output
    assert "the run ends here" in result.output
    assert "nothing was changed" not in result.output
    assert "Traceback" not in result.output


def test_a_key_with_a_password_is_not_asked_for_without_a_terminal(tmp_path: Path) -> None:
    folder = project(tmp_path, {INVENTORY: ssh("w", '"ssh_key": "key"')})
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", WORD, "-f", "key"], cwd=folder, check=True
    )
    output = answer(pyinfra(folder, [INVENTORY, SITE]))
    assert "is encrypted, set ssh_key_password" in output


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--debug", "--dry"], "--debug prints the hosts' data, passwords such as _sudo_password"),
        (["--debug-operations"], "--debug-operations prints the hosts' data"),
    ],
)
def test_options_that_do_not_do_what_they_seem_to(
    options: list[str], expected: str, tmp_path: Path
) -> None:
    files = {INVENTORY: GOOD, "tiny.py": "", "group_data/old.py": "color = 'red'\n"}
    result = pyinfra(project(tmp_path, files), [INVENTORY, "tiny.py", *options])
    assert result.code == 0, result.output
    assert expected in result.output


def test_data_that_nobody_reads_is_told_of(tmp_path: Path) -> None:
    files = {
        INVENTORY: GOOD,
        "group_data/old.py": "color = 'red'\n",
        "group_data/mine.py": "gpuboot = 5",
    }
    output = answer(pyinfra(project(tmp_path, files), [INVENTORY, SITE, "--dry"]))
    assert "old.py is read by no host: old is no group of this inventory" in output
    assert "example.py is read by no host" not in output


def test_another_folder_of_group_data_is_read_as_strictly(tmp_path: Path) -> None:
    folder = project(tmp_path, {INVENTORY: GOOD})
    (folder / "more").mkdir()
    (folder / "more" / "all.py").write_text("gpuboot = {\n")
    output = answer(pyinfra(folder, [INVENTORY, SITE, "--dry", "--group-data", "more"]))
    assert "more/all.py, line 1" in output


def test_verify_of_an_inventory_that_is_none_is_an_error() -> None:
    gpuboot = Path(sys.executable).with_name("gpuboot")
    result = subprocess.run(
        [gpuboot, "verify", "inventories/exmaple.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "did you mean inventories/example.py?" in result.stderr
