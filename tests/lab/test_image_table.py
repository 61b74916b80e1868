"""The lab's images: what charts and gpuboot's lock name is made, and says what is simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuboot.verify.service_probe import TOOLS
from lab import publishers
from lab.build import packages
from lab.build.image_table import CONTROL_PLANE, earlier, table
from lab.build.image_table_nvidia import images as simulated
from lab.build.images import Image
from lab.build.programs import recipes
from lab.build.software_kubernetes import EARLIER, PROGRAMS, KubernetesRelease
from lab.charts import assemble as charts
from lab.gpusim.builds import DRIVER_VERSIONS
from lab.gpusim.packages import driver_debs
from lab.mirror import lock

VERSIONS = """busybox-static 1:1.35.0-4+deb12u1+b1
prometheus-node-exporter 1.5.0-1+b6
"""


class Programs(dict[str, Path]):
    """Whatever program is asked for, without building it."""

    def __missing__(self, name: str) -> Path:
        return Path("/programs") / name


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    versions = tmp_path / "versions"
    versions.write_text(VERSIONS)
    return Programs({"debian-versions": versions})


@pytest.fixture
def images(programs: Programs) -> dict[str, Image]:
    image_list = table(programs)
    assert len({image.name for image in image_list}) == len(image_list)
    return {image.name: image for image in image_list}


def test_every_image_of_the_charts_is_made(images: dict[str, Image]) -> None:
    assert set(charts.images()) <= set(images)


def test_every_image_that_a_site_names_is_made_once(images: dict[str, Image]) -> None:
    repositories = [f"{image.registry}/{image.repository}" for image in images.values()]
    assert {repository: repositories.count(repository) for repository in lock.IMAGES.values()} == (
        dict.fromkeys(lock.IMAGES.values(), 1)
    )


def test_stand_ins_say_so_and_the_rest_says_where_it_is_from(images: dict[str, Image]) -> None:
    for image in images.values():
        stand_in_names = {"sim-", "vectorAdd", "flannel-cni", "pause"}
        sources = [str(source) for source in image.files.values() if isinstance(source, Path)]
        simulated = any(Path(source).name.startswith(tuple(stand_in_names)) for source in sources)
        assert image.origin.startswith(("SIMULATED: ", "STAND-IN: ") if simulated else "real, ")


def test_a_helper_pod_has_the_commands_that_make_and_remove_a_volume(
    images: dict[str, Image],
) -> None:
    files = images["docker.io/library/busybox:1.35.0"].files
    assert {"/usr/bin/sh", "/usr/bin/mkdir", "/usr/bin/rm"} <= set(files)


def test_vectoradds_image_has_what_verification_runs_in_it(images: dict[str, Image]) -> None:
    sample = next(image for name, image in images.items() if "/cuda-sample:" in name)
    assert {f"/usr/bin/{tool}" for tool in TOOLS} <= set(sample.files)


def test_nft_names_protocols_as_kube_proxy_does(images: dict[str, Image]) -> None:
    """Without the file nft lists `6` for `tcp`; kube-proxy takes such elements for leftovers of
    another kube-proxy and deletes them at its next full sync: no Service is reached any more.

    kubernetes v1.37.2 pkg/proxy/nftables/proxier.go, readOrReset and cleanupLeftoverKeys.
    """
    proxy = next(image for name, image in images.items() if "/kube-proxy:" in name)
    protocols = proxy.files["/etc/protocols"]
    assert isinstance(protocols, bytes)
    numbers = dict(line.split()[:2] for line in protocols.decode().splitlines())
    assert {key: numbers[key] for key in ("tcp", "udp", "sctp")} == {
        "tcp": "6",
        "udp": "17",
        "sctp": "132",
    }


@pytest.fixture
def with_earlier(programs: Programs) -> Programs:
    """As in a lab that tries an upgrade."""
    names = [release.program(name) for release in EARLIER for name in PROGRAMS]
    programs |= {name: Path("/programs") / name for name in (*names, *packages.CNI_PLUGINS)}
    return programs


@pytest.mark.parametrize(
    "release", EARLIER, ids=lambda kubernetes_release: kubernetes_release.version
)
def test_an_earlier_release_has_its_own_programs(
    release: KubernetesRelease, with_earlier: Programs, images: dict[str, Image]
) -> None:
    earlier_images = {image.name: image for image in earlier(with_earlier)}
    assert not set(earlier_images) & set(images)
    for name in CONTROL_PLANE:
        image = earlier_images[f"registry.k8s.io/{name}:v{release.version}"]
        assert image.files["/usr/local/bin/kube"] == Path("/programs") / release.program("kube")
        assert image.origin.endswith(f"k8s.io/kubernetes@v{release.version}")
    debs = {
        f"{deb.name} {deb.version}": deb for deb in packages.kubernetes(with_earlier, release.minor)
    }
    older = debs[f"kubelet {release.version}-1.1"].files["/usr/bin/kubelet"]
    assert older == Path("/programs") / release.program("kubelet")
    assert {"kubernetes-cni 1.9.1-1.1", "cri-tools 1.37.0-1.1"} <= set(debs)


@pytest.mark.parametrize(
    "release", EARLIER, ids=lambda kubernetes_release: kubernetes_release.version
)
def test_what_an_earlier_kubeadm_names_besides_is_there_and_says_what_it_is(
    release: KubernetesRelease, with_earlier: Programs, images: dict[str, Image]
) -> None:
    all_images = images | {image.name: image for image in earlier(with_earlier)}
    for name in (
        f"etcd:{release.etcd}", f"coredns/coredns:{release.coredns}", f"pause:{release.pause}"
    ):  # fmt: skip
        image = all_images[f"registry.k8s.io/{name}"]
        assert image.name in images or image.origin.startswith("STAND-IN under this tag")


def test_today_s_repository_has_no_release_of_another_minor(with_earlier: Programs) -> None:
    versions = {
        deb.version for deb in packages.kubernetes(with_earlier, "1.37") if deb.name == "kubelet"
    }
    assert "1.37.2-1.1" in versions
    assert all(version.startswith("1.37.") for version in versions)


def test_an_upstream_lab_builds_just_what_its_images_and_drivers_need(programs: Programs) -> None:
    requested: set[str] = set()

    class RecordingPrograms(Programs):
        def __missing__(self, name: str) -> Path:
            requested.add(name)
            return super().__missing__(name)

    images = simulated(RecordingPrograms(programs))
    assert {image.registry for image in images} == {publishers.REGISTRY}
    chart_images = {name for name in charts.images() if name.startswith(publishers.REGISTRY)}
    assert chart_images <= {image.name for image in images}
    built = {name: recipe for recipe in recipes() for name in recipe.outputs}
    driver_debs(DRIVER_VERSIONS[0], RecordingPrograms())
    assert {built[name].name for name in requested} == set(publishers.RECIPES)
