"""What bad input and faults get: a clear message with the remedy, exit code 1, no disturbance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.gpusim.builds import DRIVER_VERSIONS
from tests.e2e.conftest import Lab, assert_refused

pytestmark = pytest.mark.lab


@contextmanager
def undisturbed(lab: Lab) -> Iterator[None]:
    before = lab.snapshot()
    yield
    assert lab.snapshot() == before


@pytest.mark.parametrize(
    ("inventory", "messages"),
    [
        ("nosudo", ["gpu1", "gpu2", "cp1", "sudo"]),
        ("promise", ["gpu1", "gpu2", "promises 3", "promises 5"]),
    ],
)
def test_a_wrong_inventory(lab: Lab, inventory: str, messages: list[str]) -> None:
    with undisturbed(lab):
        assert_refused(lab.deploy(inventory=f"tests/e2e/inventories/{inventory}/lab.py"), *messages)


def test_a_worker_that_nobody_answers_for(lab: Lab) -> None:
    check = ["gpuboot", "check", "tests/e2e/inventories/silent/lab.py"]
    assert_refused(lab.command(check), "gpu9", "cannot be reached")


def test_an_unsupported_system(lab: Lab) -> None:
    lab.ssh("gpu2", "cp /etc/os-release /root/os-release; sed -i s/12/11/ /etc/os-release")
    try:
        with undisturbed(lab):
            assert_refused(lab.deploy(), "gpu2", "Debian", "11")
    finally:
        lab.ssh("gpu2", "cat /root/os-release > /etc/os-release")


def test_all_wrong_settings_at_once(lab: Lab) -> None:
    wrong_settings = {
        "cluster": {"pod_cidr": "10.96.0.0/16", "nmae": "x"},
        "driver": {"version": "latest"},
    }
    with undisturbed(lab):
        assert_refused(lab.deploy(settings=wrong_settings), "cluster.nmae", "driver.version")


def test_a_driver_that_does_not_exist(lab: Lab) -> None:
    with undisturbed(lab):
        assert_refused(
            lab.deploy(settings={"driver": {"version": "595.11.11"}}),
            "595.11.11",
            DRIVER_VERSIONS[0],
        )


def test_the_mirror_down(lab: Lab) -> None:
    assert lab.lab("mirror", "--name", lab.name, "stop").code == 0
    try:
        with undisturbed(lab):
            assert_refused(lab.deploy(), "mirror.lab")
    finally:
        assert lab.lab("mirror", "--name", lab.name, "start").code == 0


def test_a_repository_signed_by_the_wrong_key(lab: Lab) -> None:
    # Only a node that has to fetch asks the repository: let one forget what it fetched.
    lab.ssh(
        "gpu1", "cd /etc/apt && rm sources.list.d/gpuboot-cuda.sources keyrings/gpuboot-cuda.asc"
    )
    assert lab.lab("mirror", "--name", lab.name, "missign", "cuda").code == 0
    try:
        with undisturbed(lab):
            assert_refused(lab.deploy(), "gpu1", "key")
    finally:
        assert lab.lab("mirror", "--name", lab.name, "restore").code == 0


def test_a_download_with_a_bad_digest(lab: Lab) -> None:
    lab.ssh("cp1", "rm -f /usr/local/bin/helm; rm -rf /var/cache/gpuboot")
    assert lab.lab("mirror", "--name", lab.name, "corrupt", "helm").code == 0
    try:
        with undisturbed(lab):
            assert_refused(lab.deploy(), "cp1", "sha256")
        assert lab.ssh("cp1", "test -e /usr/local/bin/helm || echo absent").strip() == "absent"
    finally:
        assert lab.lab("mirror", "--name", lab.name, "restore").code == 0


def test_a_containerd_configuration_that_does_not_parse_is_rolled_back(lab: Lab) -> None:
    foreign = "/etc/containerd/conf.d/50-site.toml"
    config = "sha256sum /etc/containerd/config.toml"
    before = lab.ssh("gpu1", config)
    lab.ssh("gpu1", f"printf 'version = [broken' > {foreign}")
    try:
        with undisturbed(lab):
            # another option makes the run write the file again
            assert_refused(
                lab.deploy(settings={"runtime": {"restrict_oom_score_adj": False}}),
                "gpu1",
                "containerd",
            )
        assert lab.ssh("gpu1", config) == before
        assert lab.ssh("gpu1", "systemctl is-active containerd").strip() == "active"
    finally:
        lab.ssh("gpu1", f"rm -f {foreign}")


def test_the_next_run_repairs_what_faults_left(lab: Lab) -> None:
    with undisturbed(lab):
        result = lab.deploy()
    assert result.code == 0, result.details
    lab.ssh("gpu1", "test -e /etc/apt/keyrings/gpuboot-cuda.asc")
    lab.ssh("cp1", "test -x /usr/local/bin/helm")
