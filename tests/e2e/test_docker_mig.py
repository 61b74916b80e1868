"""GPUs of a Docker host that the settings divide by MIG: made, proven, kept in use, made again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.conftest import Lab, Run, refused, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("dockermig", "--docker", "--no-deploy")
COMMAND = ["pyinfra", "inventories/lab_docker.py", "deploys/standalone.py"]
BALANCED = {"sharing": {"node1": {"mig": "all-balanced"}}}
HALF = {
    "sharing": {"gpu_hosts": {"mig": "half"}},
    "mig_layouts": {
        "half": [
            {"gpus": [0], "instances": {"3g.40gb": 1, "1g.10gb": 3}},
            {"gpus": [1], "instances": {}},
        ]
    },
}
MADE = {"3g.40gb": 1, "1g.10gb": 3}
WHOLE = {"sharing": {"node1": {"mig": "all-disabled"}}}


@pytest.fixture(scope="module", autouse=True)
def capable(site: Lab) -> None:
    """A machine whose GPUs can be divided."""
    site.ssh("node1", "echo 'mig = 1' >> /var/lib/gpu-sim/hardware.conf")


def deploy(lab: Lab, settings: Mapping[str, Any], *arguments: str) -> Run:
    return lab.command([*COMMAND, *(arguments or ("-y",))], settings=settings)


def listed(lab: Lab) -> list[tuple[str, str]]:
    """Profile and UUID of each instance that nvidia-smi lists; none while it does not answer."""
    said = lab.lab("ssh", "--name", lab.name, "node1", "nvidia-smi -L").out
    return re.findall(r"^  MIG (\S+) +Device.*UUID: (MIG-[^)]+)\)", said, re.M)


def instances(lab: Lab) -> Counter[str]:
    return Counter(profile for profile, _ in listed(lab))


def series(lab: Lab) -> Counter[str]:
    """Instances that Prometheus has temperatures of: profile -> how many."""
    query = quote('DCGM_FI_DEV_GPU_TEMP{GPU_I_ID!=""}')
    said = lab.ssh("node1", f"curl -fsS 'http://127.0.0.1:9090/api/v1/query?query={query}'")
    return Counter(one["metric"]["GPU_I_PROFILE"] for one in json.loads(said)["data"]["result"])


def test_a_docker_host_comes_up_divided_and_proven(site: Lab) -> None:
    done = deploy(site, HALF)
    print(done.told)
    assert done.code == 0, done.told
    assert instances(site) == MADE
    assert series(site) == MADE
    report = json.loads((site.reports / "latest/verify.json").read_text())
    assert report["verdict"] == "proven", report
    tried = {item["gpu_uuid"] for item in report["findings"] if item["link"] == "workload"}
    assert {uuid for _, uuid in listed(site)} < tried
    assert len(tried) == sum(MADE.values()) + 1, "the other GPU is whole"


def test_a_second_run_has_nothing_to_do(site: Lab) -> None:
    assert deploy(site, HALF, "-y", "--json").changes == []


def test_a_container_on_a_gpu_keeps_its_layout(site: Lab) -> None:
    before = listed(site)
    image = site.ssh("node1", "docker images --format '{{.Repository}}:{{.Tag}}' | grep vectoradd")
    run = f"docker run -d --name train --gpus device={before[0][1]} --entrypoint sh"
    site.ssh("node1", f"{run} {image.split()[0]} -c 'while :; do sleep 1; done'")
    try:
        plan = deploy(site, BALANCED, "--dry")
        print(plan.err)
        assert "container train" in plan.text
        refused(deploy(site, BALANCED), "container train", "nothing was changed", "docker stop")
        assert listed(site) == before
        assert "train" in site.ssh("node1", "docker ps --format '{{.Names}}'")
    finally:
        site.ssh("node1", "docker rm -f train")


def test_another_layout_is_made_and_what_watches_goes_on(site: Lab) -> None:
    exporter = "docker inspect --format '{{.Id}} {{.State.Running}}' gpuboot-dcgm-exporter-1"
    before = site.ssh("node1", exporter)
    done = deploy(site, BALANCED)
    print(done.told)
    assert done.code == 0, done.told
    made = {"1g.10gb": 4, "2g.20gb": 2, "3g.40gb": 2}
    assert instances(site) == made
    assert series(site) == made
    assert site.ssh("node1", exporter) == before, "the same container, started again"
    assert deploy(site, BALANCED, "-y", "--json").changes == [], "CDI has the new instances"


def test_a_layout_is_made_again_after_a_reboot(site: Lab) -> None:
    """Which the simulated GPUs forget, as H100 and newer do."""
    site.reboot("node1")
    until(lambda: sum(instances(site).values()) == 8, "divided again", 120)
    done = deploy(site, BALANCED)
    assert done.code == 0, done.told


def test_without_mig_the_gpus_are_whole_again(site: Lab) -> None:
    done = deploy(site, WHOLE)
    assert done.code == 0, done.told
    assert instances(site) == {}
    assert series(site) == {}
