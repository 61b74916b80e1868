"""GPUs of a Docker host that the settings divide by MIG: made, proven, kept in use, made again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.conftest import Lab, Run, assert_refused, until

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
EXPECTED_INSTANCES = {"3g.40gb": 1, "1g.10gb": 3}
MIG_DISABLED = {"sharing": {"node1": {"mig": "all-disabled"}}}


@pytest.fixture(scope="module", autouse=True)
def capable(site: Lab) -> None:
    """A machine whose GPUs can be divided."""
    site.ssh("node1", "echo 'mig = 1' >> /var/lib/gpu-sim/hardware.conf")


def deploy(lab: Lab, settings: Mapping[str, Any], *arguments: str) -> Run:
    return lab.command([*COMMAND, *(arguments or ("-y",))], settings=settings)


def mig_devices(lab: Lab) -> list[tuple[str, str]]:
    """Profile and UUID of each instance that nvidia-smi lists; none while it does not answer."""
    output = lab.lab("ssh", "--name", lab.name, "node1", "nvidia-smi -L").out
    return re.findall(r"^  MIG (\S+) +Device.*UUID: (MIG-[^)]+)\)", output, re.M)


def instances(lab: Lab) -> Counter[str]:
    return Counter(profile for profile, _ in mig_devices(lab))


def series(lab: Lab) -> Counter[str]:
    """Instances that Prometheus has temperatures of: profile -> how many."""
    query = quote('DCGM_FI_DEV_GPU_TEMP{GPU_I_ID!=""}')
    output = lab.ssh("node1", f"curl -fsS 'http://127.0.0.1:9090/api/v1/query?query={query}'")
    return Counter(
        sample["metric"]["GPU_I_PROFILE"] for sample in json.loads(output)["data"]["result"]
    )


def test_a_docker_host_comes_up_divided_and_proven(site: Lab) -> None:
    result = deploy(site, HALF)
    print(result.details)
    assert result.code == 0, result.details
    assert instances(site) == EXPECTED_INSTANCES
    assert series(site) == EXPECTED_INSTANCES
    report = json.loads((site.reports / "latest/verify.json").read_text())
    assert report["verdict"] == "proven", report
    tested = {item["gpu_uuid"] for item in report["findings"] if item["link"] == "workload"}
    assert {uuid for _, uuid in mig_devices(site)} < tested
    assert len(tested) == sum(EXPECTED_INSTANCES.values()) + 1, "the other GPU is whole"


def test_a_second_run_has_nothing_to_do(site: Lab) -> None:
    assert deploy(site, HALF, "-y", "--json").changes == []


def test_a_container_on_a_gpu_keeps_its_layout(site: Lab) -> None:
    before = mig_devices(site)
    image = site.ssh("node1", "docker images --format '{{.Repository}}:{{.Tag}}' | grep vectoradd")
    run = f"docker run -d --name train --gpus device={before[0][1]} --entrypoint sh"
    site.ssh("node1", f"{run} {image.split()[0]} -c 'while :; do sleep 1; done'")
    try:
        plan = deploy(site, BALANCED, "--dry")
        print(plan.err)
        assert "container train" in plan.text
        assert_refused(
            deploy(site, BALANCED), "container train", "nothing was changed", "docker stop"
        )
        assert mig_devices(site) == before
        assert "train" in site.ssh("node1", "docker ps --format '{{.Names}}'")
    finally:
        site.ssh("node1", "docker rm -f train")


def test_another_layout_is_made_and_what_watches_goes_on(site: Lab) -> None:
    exporter = "docker inspect --format '{{.Id}} {{.State.Running}}' gpuboot-dcgm-exporter-1"
    before = site.ssh("node1", exporter)
    result = deploy(site, BALANCED)
    print(result.details)
    assert result.code == 0, result.details
    expected = {"1g.10gb": 4, "2g.20gb": 2, "3g.40gb": 2}
    assert instances(site) == expected
    assert series(site) == expected
    assert site.ssh("node1", exporter) == before, "the same container, started again"
    assert deploy(site, BALANCED, "-y", "--json").changes == [], "CDI has the new instances"


def test_a_layout_is_made_again_after_a_reboot(site: Lab) -> None:
    """Which the simulated GPUs forget, as H100 and newer do."""
    site.reboot("node1")
    until(lambda: sum(instances(site).values()) == 8, "divided again", 120)
    result = deploy(site, BALANCED)
    assert result.code == 0, result.details


def test_without_mig_the_gpus_are_whole_again(site: Lab) -> None:
    result = deploy(site, MIG_DISABLED)
    assert result.code == 0, result.details
    assert instances(site) == {}
    assert series(site) == {}
