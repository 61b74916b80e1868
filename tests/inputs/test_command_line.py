"""Wrong inventories, files and options, as a person gives them: one answer, before any host is
connected to, without a traceback and without a secret."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.inputs.command_line import ROOT, WORD, Done, project, pyinfra

SITE = str(ROOT / "deploys" / "site.py")
MINE = "inventories/mine.py"
GOOD = """\
control_plane = [("@fake/cp1", {"node_name": "cp1", "address": "192.0.2.1"})]
workers = [("@fake/gpu1", {"node_name": "gpu1", "address": "192.0.2.2", "gpus": 8})]
"""
LEADER = GOOD.splitlines()[0] + "\n"
DOCKER = """\
gpu_hosts = [("@fake/gpu1", {"node_name": "gpu1", "address": "192.0.2.2", "gpus": 8})]
monitor = gpu_hosts
"""


def ssh(name: str, more: str = "") -> str:
    """Two hosts by SSH, of which one has more data."""
    data = f'"ssh_connect_retries": 0, "ssh_port": 1, {more}'
    return LEADER + f'workers = [("127.0.0.1", {{"node_name": "{name}", {data}}})]\n'


# files of the folder -> what the answer says
WRONG: dict[str, tuple[dict[str, str], str]] = {
    # the inventory file
    "empty": ({MINE: ""}, f"the inventory {MINE} has no hosts"),
    "only private names": ({MINE: "_workers = ['gpu1']"}, "has no hosts"),
    "syntax": ({MINE: 'workers = [("gpu1", {"gpus": 8})\n'}, "mine.py, line 1: '[' was never clo"),
    "name": ({MINE: "workers = hosts\n"}, "mine.py, line 1: NameError: name 'hosts' is not def"),
    "a number instead of data": ({MINE: LEADER + 'workers = [("gpu2", 3)]'}, "'gpu2' with a int"),
    "no data in a pair": ({MINE: LEADER + 'workers = [("gpu2",)]'}, "'gpu2' with nothing"),
    "dicts as hosts": ({MINE: LEADER + 'workers = [{"name": "gpu1"}]'}, "no host: a dict"),
    "no brackets": (
        {MINE: LEADER + 'workers = ("gpu2", {"gpus": 8})'},
        'write workers = [("gpu1.example.com", {"gpus": 8})]',
    ),
    "text as a group": ({MINE: 'control_plane = "cp1.example.com"\n'}, "no list of hosts, but a s"),
    "twice": ({MINE: LEADER + 'workers = ["@fake/gpu1", "@fake/gpu1"]'}, "names @fake/gpu1 twice"),
    "no name": ({MINE: LEADER + 'workers = [""]'}, "has a host without a name"),
    "a user in the name": ({MINE: LEADER + 'workers = ["root@gpu1"]'}, '{"ssh_user": "root"}'),
    "a port in the name": ({MINE: LEADER + 'workers = ["gpu1:2222"]'}, '{"ssh_port": 2222}'),
    "a user and a password": (
        {MINE: LEADER + f'workers = [("gpu1", {{"ssh_password": "{WORD}"}}, "x")]'},
        "'gpu1' with a dict, a str instead of a dict",
    ),
    "no such connector": ({MINE: LEADER + 'workers = ["@dokcer/gpu1"]'}, "Invalid connector: dok"),
    "both groups": ({MINE: LEADER + 'workers = ["@fake/cp1"]'}, "is in both groups, control_pl"),
    "an import": ({MINE: "from mine import hosts\n"}, "line 1: ModuleNotFoundError"),
    "YAML": ({MINE: "control_plane:\n  - cp1\n"}, "mine.py, line 1: invalid syntax: control_p"),
    "a user's number": ({MINE: GOOD.replace("8", '"8"')}, "gpus is '8', which is not a number of"),
    "a name with _": ({MINE: GOOD.replace('"gpu1"', '"gpu_1"')}, "node name 'gpu_1' is no name"),
    "an address of a name": ({MINE: GOOD.replace("192.0.2.2", "gpu1")}, "'gpu1' is not an IP addr"),
    "one address": ({MINE: GOOD.replace("192.0.2.2", "192.0.2.1")}, "have the same address 192"),
    "no leader": ({MINE: "workers = ['@fake/gpu1']"}, "there is no control-plane node"),
    "misspelt group": ({MINE: GOOD.replace("workers", "worker")}, "call the group workers"),
    "misspelt data": ({MINE: GOOD.replace('"gpus"', '"gpu"')}, "has gpu, which nobody reads"),
    # group_data
    "settings as text": ({MINE: GOOD, "group_data/mine.py": 'gpuboot = "x"'}, "gpuboot is a str"),
    "settings as a list": ({MINE: GOOD, "group_data/all.py": "gpuboot = ['x']"}, "is a list, not"),
    "group_data's syntax": (
        {MINE: GOOD, "group_data/mine.py": "gpuboot = {\n"},
        "group_data/mine.py, line 1",
    ),
    "a variable that is not set": (
        {MINE: GOOD, "group_data/mine.py": "import os\n\ngpuboot = os.environ['NO_SUCH_VAR']\n"},
        "group_data/mine.py, line 3: KeyError: 'NO_SUCH_VAR'",
    ),
    "settings that nobody reads": (
        {MINE: GOOD, "group_data/mien.py": "gpuboot = {'cluster': {'name': 'mine'}}"},
        "mien.py is read by no host: mien is no group of this inventory",
    ),
    "settings of one group": (
        {MINE: GOOD, "group_data/workers.py": "gpuboot = {'cluster': {'name': 'mine'}}"},
        "its gpuboot settings differ from those of @fake/cp1",
    ),
    "wrong settings beside secrets": (
        {
            MINE: GOOD,
            "group_data/mine.py": f"gpuboot = {{'grafana_password': '{WORD}', 'proxy': {{'http': "
            f"'http://u:{WORD}@p:1'}}, 'gpu_operator': {{'enabled': False}}}}",
        },
        'use exporter.kind "chart"',
    ),
    "more nodes than networks": (
        {MINE: GOOD, "group_data/mine.py": "gpuboot = {'cluster': {'pod_cidr': '10.244.0.0/24'}}"},
        "has room for 1 nodes (/24 for each), the inventory has 2",
    ),
    "an environment that is none": (
        {MINE: GOOD.splitlines()[0], "group_data/mine.py": f"_env = '{WORD}'"},
        "_env is a str, not a dict of environment variables",
    ),
    "turns on a Docker host": (
        {MINE: DOCKER, "group_data/mine.py": "gpuboot = {'sharing': {'gpu1': {'time_slices': 2}}}"},
        "time_slices and mps are for clusters",
    ),
    "a Docker host that there is not": (
        {MINE: DOCKER, "group_data/mine.py": "gpuboot = {'sharing': {'gpu9': {'time_slices': 1}}}"},
        "sharing names 'gpu9', which is neither a host nor a group",
    ),
    # how to log in
    "no key": ({MINE: ssh("w", '"ssh_key": "~/none"')}, "No such private key file: ~/none (ssh_k"),
    "a public key": (
        {MINE: ssh("w", '"ssh_key": "public"'), "public": "ssh-ed25519 AAAA a@b\n"},
        "Invalid private key file: public (ssh_key of 127.0.0.1)",
    ),
    "a port that is none": ({MINE: ssh("w", '"ssh_port": "ssh"')}, "ssh_port`: str is not an"),
    "a port that cannot be": ({MINE: ssh("w", '"ssh_port": 70000')}, "ssh_port is 70000"),
    "a user that is a number": ({MINE: ssh("w", '"ssh_user": 1000')}, "ssh_user`: int is not"),
}


def answer(done: Done) -> str:
    assert done.code == 1, done.told
    for never in ("Traceback", "bug report", "continue?", "Beginning operation", WORD):
        assert never not in done.told, done.told
    assert "remedy: " in done.told
    return done.told


@pytest.mark.parametrize("case", WRONG)
def test_one_answer_before_any_host_is_connected_to(case: str, tmp_path: Path) -> None:
    files, said = WRONG[case]
    done = pyinfra(project(tmp_path, files), [MINE, SITE, "--dry"])
    told = answer(done)
    assert said in told, told
    assert "nothing was changed" in told
    assert "Connected" not in told
    assert told.count("remedy: ") == int(told.partition(" problem")[0].split()[-1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch.py"], "there is no inventory file nosuch.py"),
        (["inventories/exmaple.py"], "did you mean inventories/example.py?"),
        (["example"], "did you mean inventories/example.py?"),
        (["exmaple"], "did you mean inventories/example.py?"),
        (["inventories"], "inventories is a folder"),
        ([MINE, "--limit", "gpu7"], "--limit and --exclude leave no host"),
        ([MINE, "--exclude", "workers", "--exclude", "control_plane"], "leave no host"),
    ],
)
def test_an_inventory_that_is_none(arguments: list[str], said: str, tmp_path: Path) -> None:
    inventory, *options = arguments
    folder = project(tmp_path, {MINE: GOOD})
    assert said in answer(pyinfra(folder, [inventory, SITE, "--dry", *options]))


@pytest.mark.parametrize("options", [[], ["-y"], ["--dry"], ["-y", "--fail-percent", "0"]])
def test_hosts_that_cannot_be_reached_are_told_at_once(options: list[str], tmp_path: Path) -> None:
    leader = ssh("cp1").replace("workers", "control_plane").replace("127.0.0.1", "no.such.invalid")
    files = {MINE: leader.partition("\n")[2] + ssh("gpu1").partition("\n")[2]}
    told = answer(pyinfra(project(tmp_path, files), [MINE, SITE, *options]))
    assert "2 problems; nothing was changed" in told
    for host in ("127.0.0.1", "no.such.invalid"):
        assert f"[{host}] cannot be reached: " in told


def test_one_host_that_cannot_be_reached_stands_beside_the_others_problems(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "plan" / "inventories", tmp_path / "plan")
    text = (
        'import os, runpy\nos.environ["PLAN_BREAKAGE"] = \'{"gpu1": ["cgroup 1"]}\'\n'
        '_site = runpy.run_path("plan/site.py")\n_data = _site["_data"]\n'
        'control_plane = _site["control_plane"]\n'
        "workers = (_site['workers'][0] + [('127.0.0.1', {'node_name': 'gpu2', 'address': "
        "'192.0.2.99', 'ssh_port': 1, 'ssh_connect_retries': 0})], _data)\n"
    )
    told = answer(pyinfra(project(tmp_path, {MINE: text}), [MINE, SITE]))
    assert "[127.0.0.1] cannot be reached: " in told
    assert "[@fake/gpu1] it uses cgroup v1" in told
    assert told.count("cannot be reached") == 1


def test_a_question_that_nobody_can_answer_ends_the_run(tmp_path: Path) -> None:
    files = {
        MINE: GOOD,
        "tiny.py": "from pyinfra.operations import server\n\n"
        "server.shell(name='Say', commands=['true'])\n",
    }
    told = answer(pyinfra(project(tmp_path, files), [MINE, "tiny.py"]))
    assert "standard input is no terminal" in told
    assert "run with -y" in told


def test_a_failed_host_is_no_question_without_a_terminal(tmp_path: Path) -> None:
    files = {
        MINE: "one = [('@fake/a', {'fake_responses': {'boom': {'success': False}}}), '@fake/b']\n",
        "tiny.py": "from pyinfra.operations import server\n\n"
        "server.shell(name='Fail', commands=['boom'])\n",
    }
    done = pyinfra(project(tmp_path, files), [MINE, "tiny.py"], answers="\n")
    assert done.code == 1, done.told
    assert "the run ends here" in done.told
    assert "nothing was changed" not in done.told
    assert "Traceback" not in done.told


def test_a_key_with_a_password_is_not_asked_for_without_a_terminal(tmp_path: Path) -> None:
    folder = project(tmp_path, {MINE: ssh("w", '"ssh_key": "key"')})
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", WORD, "-f", "key"], cwd=folder, check=True
    )
    told = answer(pyinfra(folder, [MINE, SITE]))
    assert "is encrypted, set ssh_key_password" in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--debug", "--dry"], "--debug prints the hosts' data, passwords such as _sudo_password"),
        (["--debug-operations"], "--debug-operations prints the hosts' data"),
    ],
)
def test_options_that_do_not_do_what_they_seem_to(
    options: list[str], said: str, tmp_path: Path
) -> None:
    files = {MINE: GOOD, "tiny.py": "", "group_data/old.py": "color = 'red'\n"}
    done = pyinfra(project(tmp_path, files), [MINE, "tiny.py", *options])
    assert done.code == 0, done.told
    assert said in done.told


def test_data_that_nobody_reads_is_told_of(tmp_path: Path) -> None:
    files = {
        MINE: GOOD,
        "group_data/old.py": "color = 'red'\n",
        "group_data/mine.py": "gpuboot = 5",
    }
    told = answer(pyinfra(project(tmp_path, files), [MINE, SITE, "--dry"]))
    assert "old.py is read by no host: old is no group of this inventory" in told
    assert "example.py is read by no host" not in told


def test_another_folder_of_group_data_is_read_as_strictly(tmp_path: Path) -> None:
    folder = project(tmp_path, {MINE: GOOD})
    (folder / "more").mkdir()
    (folder / "more" / "all.py").write_text("gpuboot = {\n")
    told = answer(pyinfra(folder, [MINE, SITE, "--dry", "--group-data", "more"]))
    assert "more/all.py, line 1" in told


def test_verify_of_an_inventory_that_is_none_is_an_error() -> None:
    gpuboot = Path(sys.executable).with_name("gpuboot")
    done = subprocess.run(
        [gpuboot, "verify", "inventories/exmaple.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "did you mean inventories/example.py?" in done.stderr
