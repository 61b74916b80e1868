"""Operating systems, GPU generations, and where each gets its packages."""

import re
from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.config.versions import DriverLock
from gpuboot.hosts import driver_packages, gpu_models, platforms
from gpuboot.hosts.node_state import parse
from gpuboot.hosts.platforms import Platform
from gpuboot.hosts.repositories import Repository, repository
from tests.unit.test_node_state import ANSWER

STATE = parse(ANSWER)
UBUNTU = platforms.of(STATE)
ROCKY = platforms.of(replace(STATE, os_id="rocky", os_version="9.6"))


@pytest.mark.parametrize(
    ("os", "version", "cuda", "key"),
    [
        ("ubuntu", "22.04", "ubuntu2204", "3bf863cc.pub"),
        ("ubuntu", "24.04", "ubuntu2404", "3bf863cc.pub"),
        ("ubuntu", "26.04", "ubuntu2604", "60DF8A40.pub"),
        ("debian", "12", "debian12", "3bf863cc.pub"),
        ("debian", "13", "debian13", "8793F200.pub"),
        ("rocky", "9", "rhel9", "D42D0685.pub"),
        ("rocky", "9.6", "rhel9", "D42D0685.pub"),
        ("rhel", "9", "rhel9", "D42D0685.pub"),
        ("rhel", "9.7", "rhel9", "D42D0685.pub"),
    ],
)
def test_supported_systems(os: str, version: str, cuda: str, key: str) -> None:
    platform = platforms.find(replace(STATE, os_id=os, os_version=version))
    assert platform is not None
    assert (platform.cuda, platform.cuda_key[0]) == (cuda, key)


def test_unsupported_systems() -> None:
    for os, version in (("ubuntu", "20.04"), ("rocky", "8.10"), ("rhel", "10.1"), ("fedora", "9")):
        assert platforms.find(replace(STATE, os_id=os, os_version=version)) is None
    with pytest.raises(platforms.UnsupportedPlatformError, match="Fedora 43"):
        platforms.of(replace(STATE, os_id="fedora", os_name="Fedora 43"))


def test_only_systems_that_nobody_has_run_are_experimental() -> None:
    assert [item.name for item in platforms.PLATFORMS if item.experimental] == [
        "Ubuntu 26.04",
        "Rocky Linux 9",
        "RHEL 9",
    ]


def test_names_of_packages() -> None:
    names = ["ca-certificates", "conntrack", "curl", "iproute2", "socat"]
    assert UBUNTU.package_names(names) == names
    assert ROCKY.package_names(names) == [
        "ca-certificates", "conntrack-tools", "iproute", "iproute-tc", "socat",
        "python3-dnf-plugin-versionlock",
    ]  # fmt: skip
    assert UBUNTU.version_pattern("docker-ce", "29.8.1") == "5:29.8.1-*"
    assert ROCKY.version_pattern("docker-ce", "29.8.1") == "29.8.1-*"


def test_fingerprints_are_whole() -> None:
    keys = [value for name, value in vars(platforms).items() if re.search("_KEY(_|$)", name)]
    keys = [key for key in keys if isinstance(key, str)]
    assert len(keys) == 8
    assert all(re.fullmatch("[0-9A-F]{40}", key) for key in keys)


@pytest.mark.parametrize(
    ("version", "flavour", "fabric", "packages"),
    [
        ("595.91.07", "open", False, ("nvidia-open",)),
        ("595.91.07", "proprietary", True, ("cuda-drivers", "nvidia-fabricmanager")),
        ("580.178.04", "proprietary", True, ("cuda-drivers-580", "nvidia-fabricmanager")),
        ("570.10.1", "open", True, ("nvidia-open-570", "nvidia-fabricmanager-570")),
    ],
)
def test_driver_packages(
    version: str, flavour: driver_packages.Flavour, fabric: bool, packages: tuple[str, ...]
) -> None:
    assert driver_packages.driver_packages(UBUNTU, version, flavour, fabric) == packages


@pytest.mark.parametrize("version", ["595.91.07", "580.178.04"])
def test_driver_packages_of_a_module_stream_carry_no_branch(version: str) -> None:
    assert driver_packages.driver_packages(ROCKY, version, "open", True) == (
        "nvidia-open", "nvidia-driver", "nvidia-driver-cuda", "kmod-nvidia-open-dkms",
        "nvidia-fabricmanager",
    )  # fmt: skip
    assert driver_packages.driver_packages(ROCKY, version, "proprietary", False) == (
        "cuda-drivers", "nvidia-driver", "nvidia-driver-cuda", "kmod-nvidia-latest-dkms",
    )  # fmt: skip


def test_module_streams() -> None:
    assert driver_packages.module_stream("595.91.07", "open") == "595-open"
    assert driver_packages.module_stream("580.178.04", "proprietary") == "580-dkms"


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (0x13C2, "Maxwell"),  # GTX 970
        (0x17FD, "Maxwell"),  # M40
        (0x15F8, "Pascal"),  # P100
        (0x1B38, "Pascal"),  # P40
        (0x1DB6, "Volta"),  # V100
        (0x1EB8, "Turing"),  # T4
        (0x2184, "Turing"),  # GTX 1660
        (0x20B2, "Ampere"),  # A100 80GB
        (0x2235, "Ampere"),  # A40
        (0x2236, "Ampere"),  # A10
        (0x2237, "Ampere"),  # A10G of AWS g5
        (0x2330, "Hopper"),  # H100 SXM
        (0x2335, "Hopper"),  # H200
        (0x2342, "Grace Hopper"),  # GH200
        (0x26B9, "Ada"),  # L40S
        (0x27B8, "Ada"),  # L4
        (0x2901, "Blackwell or newer"),  # B200
        (0x2941, "Blackwell or newer"),  # GB200
        (0x2BB5, "Blackwell or newer"),  # RTX PRO 6000
        (0x3182, "Blackwell or newer"),  # B300
        (0x31C3, "Blackwell or newer"),  # GB300 of a DGX Station (NVIDIA/NemoClaw#7417)
        (0x102D, "older than Maxwell"),  # K80
    ],
)
def test_generations(device: int, name: str) -> None:
    assert gpu_models.generation(device).name == name


def driver(branch: int) -> DriverLock:
    return DriverLock(version=f"{branch}.1.2", last_legacy="580.178.04")


def test_flavours() -> None:
    assert gpu_models.flavour([0x2330], "auto", driver(595)) == "open"
    assert gpu_models.flavour([0x2330], "proprietary", driver(595)) == "proprietary"
    assert gpu_models.flavour([0x1DB6], "auto", driver(580)) == "proprietary"
    assert gpu_models.flavour([], "auto", driver(595)) == "open"


@pytest.mark.parametrize(
    ("devices", "modules", "branch", "cause"),
    [
        ([0x1DB6], "auto", 595, "driver branch 595 has dropped Volta"),
        ([0x1DB6], "open", 580, "open kernel modules know no Volta"),
        ([0x2901], "proprietary", 595, "needs the open kernel modules"),
        ([0x1DB6, 0x2901], "auto", 580, "mixes GPUs"),
        ([0x102D], "auto", 580, "no supported driver knows"),
    ],
)
def test_flavours_that_do_not_exist(
    devices: list[int], modules: str, branch: int, cause: str
) -> None:
    with pytest.raises(gpu_models.FlavourError, match=cause):
        gpu_models.flavour(devices, modules, driver(branch))


def repository_of(
    name: str,
    machine: str = "x86_64",
    settings: dict[str, Any] | None = None,
    platform: Platform = platforms.PLATFORMS[1],
) -> Repository:
    return repository(name, platform, machine, "1.36", parse_settings(settings or {}))


def test_upstream_addresses() -> None:
    docker = repository_of("docker")
    assert docker.url == "https://download.docker.com/linux/ubuntu"
    assert "Suites: noble\nComponents: stable\n" in docker.text
    assert docker.key_url == "https://download.docker.com/linux/ubuntu/gpg"
    kubernetes = repository_of("kubernetes")
    assert kubernetes.url == "https://pkgs.k8s.io/core:/stable:/v1.36/deb/"
    assert kubernetes.key_url == "https://pkgs.k8s.io/core:/stable:/v1.36/deb/Release.key"
    cuda = repository_of("cuda")
    base = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/"
    assert (cuda.url, cuda.key_url) == (base, base + "3bf863cc.pub")
    assert repository_of("cuda", "aarch64").url.endswith("/ubuntu2404/sbsa/")
    toolkit = repository_of("toolkit", "aarch64")
    assert toolkit.url == "https://nvidia.github.io/libnvidia-container/stable/deb/arm64/"
    assert toolkit.key_url == "https://nvidia.github.io/libnvidia-container/gpgkey"


def test_upstream_addresses_of_rpm_repositories() -> None:
    docker = repository_of("docker", platform=ROCKY)
    assert docker.url == "https://download.docker.com/linux/rhel/9/x86_64/stable"
    assert docker.key_url == "https://download.docker.com/linux/rhel/gpg"
    kubernetes = repository_of("kubernetes", platform=ROCKY)
    base = "https://pkgs.k8s.io/core:/stable:/v1.36/rpm/"
    assert (kubernetes.url, kubernetes.key_url) == (base, base + "repodata/repomd.xml.key")
    cuda = repository_of("cuda", "aarch64", platform=ROCKY)
    base = "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/sbsa/"
    assert (cuda.url, cuda.key_url) == (base, base + "D42D0685.pub")
    toolkit = repository_of("toolkit", platform=ROCKY)
    assert toolkit.url == "https://nvidia.github.io/libnvidia-container/stable/rpm/x86_64"
    assert toolkit.key_url == "https://nvidia.github.io/libnvidia-container/gpgkey"


def test_repo_files() -> None:
    assert repository_of("docker", platform=ROCKY).text.splitlines()[1:] == [
        "[gpuboot-docker]",
        "name=gpuboot: docker",
        "baseurl=https://download.docker.com/linux/rhel/9/x86_64/stable",
        "enabled=1",
        "gpgcheck=1",
        "repo_gpgcheck=0",
        "gpgkey=file:///etc/pki/rpm-gpg/gpuboot-docker.asc",
    ]
    toolkit = repository_of("toolkit", platform=ROCKY).text
    assert "\ngpgcheck=0\nrepo_gpgcheck=1\n" in toolkit, "its index is signed, its rpms are not"
    settings = {
        "mirrors": {"apt": {"docker": {"url": "https://m.example/d"}}, "ca_bundle": "/etc/ca.pem"},
        "proxy": {"https": "http://proxy.example:3128", "no_proxy": ["m.example"]},
    }
    mirrored = repository_of("docker", settings=settings, platform=ROCKY).text
    assert mirrored.endswith("\nsslcacert=/etc/ca.pem\nproxy=_none_\n")
    assert "sslcacert" not in repository_of("cuda", settings=settings, platform=ROCKY).text


def test_a_mirror_keeps_paths_and_may_have_its_own_key() -> None:
    settings = {"mirrors": {"apt": {"cuda": {"url": "https://m.example/apt/cuda"}}}}
    cuda = repository_of("cuda", settings=settings)
    assert cuda.url == "https://m.example/apt/cuda/ubuntu2404/x86_64/"
    assert cuda.fingerprint == platforms.CUDA_KEY
    settings["mirrors"]["apt"]["cuda"]["key_sha256"] = "ab" * 32
    cuda = repository_of("cuda", settings=settings)
    assert (cuda.fingerprint, cuda.key_sha256) == ("", "ab" * 32)


def test_deb822_files() -> None:
    assert repository_of("docker").text.splitlines()[1:] == [
        "Types: deb",
        "URIs: https://download.docker.com/linux/ubuntu",
        "Suites: noble",
        "Components: stable",
        "Architectures: amd64",
        "Signed-By: /etc/apt/keyrings/gpuboot-docker.asc",
    ]
    assert "Components" not in repository_of("cuda").text
