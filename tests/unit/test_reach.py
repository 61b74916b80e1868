"""Where a host downloads from follows the settings, and a silent place is named with its use."""

from gpuboot.nodes import Node
from gpuboot.reach import endpoints, problems
from gpuboot.settings import load

LEADER = Node("cp1", "cp1", "192.0.2.1", "control_plane", gpus=0, leader=True)
GPU = Node("gpu1", "gpu1", "192.0.2.2", "worker", gpus=8, leader=False)


def test_a_node_needs_only_what_it_installs():
    leader, gpu = endpoints(load({}), LEADER), endpoints(load({}), GPU)
    assert "get.helm.sh:443" in leader
    assert "get.helm.sh:443" not in gpu
    assert "developer.download.nvidia.com:443" in gpu
    assert "developer.download.nvidia.com:443" not in leader
    assert "registry.k8s.io:443" in leader


def test_a_mirror_takes_the_publishers_place():
    mirrors = {
        "apt": {
            name: {"url": "http://mirror:8080/x"}
            for name in ("docker", "kubernetes", "cuda", "toolkit")
        },
        "images": {"*": "http://mirror:8080/images"},
    }
    assert set(endpoints(load({"mirrors": mirrors}), GPU)) == {"mirror:8080"}


def test_behind_a_proxy_only_the_proxy_counts():
    settings = load({"proxy": {"https": "http://proxy:3128"}})
    assert set(endpoints(settings, LEADER)) == {"proxy:3128"}


def test_a_silent_place_is_named_with_what_comes_from_it():
    (problem,) = problems(load({}), [LEADER, GPU], {"gpu1": ["nvcr.io:443"]})
    assert problem.host == "gpu1"
    assert "nvcr.io:443 does not answer (images of nvcr.io)" in problem.cause
    assert "mirrors" in problem.remedy


def test_one_silent_place_is_one_problem_for_all_hosts():
    silent = {"cp1": ["ghcr.io:443"], "gpu1": ["ghcr.io:443"]}
    (problem,) = problems(load({}), [LEADER, GPU], silent)
    assert problem.host == ""
    assert problem.cause.startswith("from cp1, gpu1: ghcr.io:443 does not answer")


def test_a_site_without_internet_is_one_problem():
    silent = {node.host: list(endpoints(load({}), node)) for node in (LEADER, GPU)}
    assert sum(map(len, silent.values())) > 15
    (problem,) = problems(load({}), [LEADER, GPU], silent)
    assert problem.cause == "from cp1, gpu1: none of the addresses to download from answers"
    assert "mirrors" in problem.remedy
