"""Inventories and group_data that no run can be started with, as people write them."""

from __future__ import annotations

from tests.inputs.command_line import WORD

INVENTORY = "inventories/mine.py"
GOOD = """\
control_plane = [("@fake/cp1", {"node_name": "cp1", "address": "192.0.2.1"})]
workers = [("@fake/gpu1", {"node_name": "gpu1", "address": "192.0.2.2", "gpus": 8})]
"""
LEADER = GOOD.splitlines()[0] + "\n"
DOCKER = """\
gpu_hosts = [("@fake/gpu1", {"node_name": "gpu1", "address": "192.0.2.2", "gpus": 8})]
monitor = gpu_hosts
"""


def ssh(name: str, extra: str = "") -> str:
    """Two hosts by SSH, of which one has more data."""
    data = f'"ssh_connect_retries": 0, "ssh_port": 1, {extra}'
    return LEADER + f'workers = [("127.0.0.1", {{"node_name": "{name}", {data}}})]\n'


# files of the folder -> what the answer says
WRONG_INVENTORIES: dict[str, tuple[dict[str, str], str]] = {
    # the inventory file
    "empty": ({INVENTORY: ""}, f"the inventory {INVENTORY} has no hosts"),
    "only private names": ({INVENTORY: "_workers = ['gpu1']"}, "has no hosts"),
    "syntax": (
        {INVENTORY: 'workers = [("gpu1", {"gpus": 8})\n'},
        "mine.py, line 1: '[' was never clo",
    ),
    "name": (
        {INVENTORY: "workers = hosts\n"},
        "mine.py, line 1: NameError: name 'hosts' is not def",
    ),
    "a number instead of data": (
        {INVENTORY: LEADER + 'workers = [("gpu2", 3)]'},
        "'gpu2' with a int",
    ),
    "no data in a pair": ({INVENTORY: LEADER + 'workers = [("gpu2",)]'}, "'gpu2' with nothing"),
    "dicts as hosts": ({INVENTORY: LEADER + 'workers = [{"name": "gpu1"}]'}, "no host: a dict"),
    "no brackets": (
        {INVENTORY: LEADER + 'workers = ("gpu2", {"gpus": 8})'},
        'write workers = [("gpu1.example.com", {"gpus": 8})]',
    ),
    "text as a group": (
        {INVENTORY: 'control_plane = "cp1.example.com"\n'},
        "no list of hosts, but a s",
    ),
    "twice": (
        {INVENTORY: LEADER + 'workers = ["@fake/gpu1", "@fake/gpu1"]'},
        "names @fake/gpu1 twice",
    ),
    "no name": ({INVENTORY: LEADER + 'workers = [""]'}, "has a host without a name"),
    "a user in the name": ({INVENTORY: LEADER + 'workers = ["root@gpu1"]'}, '{"ssh_user": "root"}'),
    "a port in the name": ({INVENTORY: LEADER + 'workers = ["gpu1:2222"]'}, '{"ssh_port": 2222}'),
    "a user and a password": (
        {INVENTORY: LEADER + f'workers = [("gpu1", {{"ssh_password": "{WORD}"}}, "x")]'},
        "'gpu1' with a dict, a str instead of a dict",
    ),
    "no such connector": (
        {INVENTORY: LEADER + 'workers = ["@dokcer/gpu1"]'},
        "Invalid connector: dok",
    ),
    "both groups": (
        {INVENTORY: LEADER + 'workers = ["@fake/cp1"]'},
        "is in both groups, control_pl",
    ),
    "an import": ({INVENTORY: "from mine import hosts\n"}, "line 1: ModuleNotFoundError"),
    "YAML": (
        {INVENTORY: "control_plane:\n  - cp1\n"},
        "mine.py, line 1: invalid syntax: control_p",
    ),
    "a user's number": (
        {INVENTORY: GOOD.replace("8", '"8"')},
        "gpus is '8', which is not a number of",
    ),
    "a name with _": (
        {INVENTORY: GOOD.replace('"gpu1"', '"gpu_1"')},
        "node name 'gpu_1' is no name",
    ),
    "an address of a name": (
        {INVENTORY: GOOD.replace("192.0.2.2", "gpu1")},
        "'gpu1' is not an IP addr",
    ),
    "one address": (
        {INVENTORY: GOOD.replace("192.0.2.2", "192.0.2.1")},
        "have the same address 192",
    ),
    "no leader": ({INVENTORY: "workers = ['@fake/gpu1']"}, "there is no control-plane node"),
    "misspelt group": ({INVENTORY: GOOD.replace("workers", "worker")}, "call the group workers"),
    "misspelt data": ({INVENTORY: GOOD.replace('"gpus"', '"gpu"')}, "has gpu, which nobody reads"),
    # group_data
    "settings as text": (
        {INVENTORY: GOOD, "group_data/mine.py": 'gpuboot = "x"'},
        "gpuboot is a str",
    ),
    "settings as a list": (
        {INVENTORY: GOOD, "group_data/all.py": "gpuboot = ['x']"},
        "is a list, not",
    ),
    "group_data's syntax": (
        {INVENTORY: GOOD, "group_data/mine.py": "gpuboot = {\n"},
        "group_data/mine.py, line 1",
    ),
    "a variable that is not set": (
        {
            INVENTORY: GOOD,
            "group_data/mine.py": "import os\n\ngpuboot = os.environ['NO_SUCH_VAR']\n",
        },
        "group_data/mine.py, line 3: KeyError: 'NO_SUCH_VAR'",
    ),
    "settings that nobody reads": (
        {INVENTORY: GOOD, "group_data/mien.py": "gpuboot = {'cluster': {'name': 'mine'}}"},
        "mien.py is read by no host: mien is no group of this inventory",
    ),
    "settings of one group": (
        {INVENTORY: GOOD, "group_data/workers.py": "gpuboot = {'cluster': {'name': 'mine'}}"},
        "its gpuboot settings differ from those of @fake/cp1",
    ),
    "wrong settings beside secrets": (
        {
            INVENTORY: GOOD,
            "group_data/mine.py": f"gpuboot = {{'grafana_password': '{WORD}', 'proxy': {{'http': "
            f"'http://u:{WORD}@p:1'}}, 'gpu_operator': {{'enabled': False}}}}",
        },
        'use exporter.kind "chart"',
    ),
    "more nodes than networks": (
        {
            INVENTORY: GOOD,
            "group_data/mine.py": "gpuboot = {'cluster': {'pod_cidr': '10.244.0.0/24'}}",
        },
        "has room for 1 nodes (/24 for each), the inventory has 2",
    ),
    "an environment that is none": (
        {INVENTORY: GOOD.splitlines()[0], "group_data/mine.py": f"_env = '{WORD}'"},
        "_env is a str, not a dict of environment variables",
    ),
    "turns on a Docker host": (
        {
            INVENTORY: DOCKER,
            "group_data/mine.py": "gpuboot = {'sharing': {'gpu1': {'time_slices': 2}}}",
        },
        "time_slices and mps are for clusters",
    ),
    "a Docker host that there is not": (
        {
            INVENTORY: DOCKER,
            "group_data/mine.py": "gpuboot = {'sharing': {'gpu9': {'time_slices': 1}}}",
        },
        "sharing names 'gpu9', which is neither a host nor a group",
    ),
    # how to log in
    "no key": (
        {INVENTORY: ssh("w", '"ssh_key": "~/none"')},
        "No such private key file: ~/none (ssh_k",
    ),
    "a public key": (
        {INVENTORY: ssh("w", '"ssh_key": "public"'), "public": "ssh-ed25519 AAAA a@b\n"},
        "Invalid private key file: public (ssh_key of 127.0.0.1)",
    ),
    "a port that is none": ({INVENTORY: ssh("w", '"ssh_port": "ssh"')}, "ssh_port`: str is not an"),
    "a port that cannot be": ({INVENTORY: ssh("w", '"ssh_port": 70000')}, "ssh_port is 70000"),
    "a user that is a number": ({INVENTORY: ssh("w", '"ssh_user": 1000')}, "ssh_user`: int is not"),
}
