"""An inventory's hosts and settings, read without connecting to any host.

    python -m deploys.run.offline INVENTORY [KEY=VALUE ...]

prints them as JSON: who fills a mirror reaches the internet, and often no host. What is wrong with
them is told on stderr.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from pyinfra_cli.exceptions import CliError

from deploys.run import startup, topology
from gpuboot.config import inventory_files
from gpuboot.config.inventory import plan
from gpuboot.config.problems import render
from gpuboot.config.settings import SettingsError
from gpuboot.preflight import docker_inventory as docker_inventory
from gpuboot.site.load_site import load


def main(arguments: list[str]) -> int:
    """The exit code: 0 when the inventory was printed."""
    inventory_name, *data = arguments
    values = {key: value for key, _, value in (item.partition("=") for item in data)}
    try:
        source = startup.inventory(inventory_name, values)
    except CliError as error:
        print(error.message, file=sys.stderr)
        return 1
    tree, problems = topology.settings_data(source)
    if not len(source):
        problems.append(inventory_files.no_hosts(inventory_name, Path.cwd()))
    endpoint, docker = None, topology.docker_hosts(source)
    try:
        endpoint = load(tree, docker)[0].cluster.endpoint
    except SettingsError as error:
        problems += error.problems
    entries = topology.read(source)
    nodes, inventory_problems = (
        docker_inventory.plan(entries) if docker else plan(entries, endpoint)
    )
    if problems := [*problems, *inventory_problems]:
        print(render(problems), file=sys.stderr)
        return 1
    print(json.dumps({"gpuboot": tree, "nodes": [asdict(node) for node in nodes]}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
