"""Earlier releases of Kubernetes, which upgrades start from: each built from upstream's source.

Each has a Go module of its own (lab/build/kubernetes/VERSION), with the libraries that upstream
built it with; 1.36.3 with those of the lab's own clusters, when they were of it. Only labs that try
an upgrade want them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.build.golang import go_recipe
from lab.build.recipe import Recipe
from lab.build.toolchain import RECIPES

MODULES = Path(__file__).parent / "kubernetes"
KUBERNETES = "k8s.io/kubernetes"
PROGRAMS = ("kubeadm", "kubelet", "kubectl", "kube")


@dataclass(frozen=True)
class KubernetesRelease:
    """An earlier release.

    + version: without its v
    + etcd, coredns, pause: tags of the images that its kubeadm names (its constants.go)
    """

    version: str
    etcd: str
    coredns: str
    pause: str

    @property
    def minor(self) -> str:
        """The minor release, as in `1.36`."""
        return self.version.rpartition(".")[0]

    def program(self, name: str) -> str:
        """The name under which one of its programs is built, as in `kubelet-1.36.3`."""
        return f"{name}-{self.version}"

    def is_built(self, programs: Mapping[str, Path]) -> bool:
        """Whether its programs are among those that were built."""
        return self.program("kubelet") in programs


# what `scripts/lab --previous-release` and `--previous-patch` deploy
PREVIOUS_MINOR = KubernetesRelease("1.36.3", etcd="3.6.8-0", coredns="v1.14.2", pause="3.10.2")
PREVIOUS_PATCH = KubernetesRelease("1.37.1", etcd="3.7.0-0", coredns="v1.14.6", pause="3.10.2")
EARLIER = (PREVIOUS_MINOR, PREVIOUS_PATCH)


def recipes(release: KubernetesRelease) -> list[Recipe]:
    """What a lab wants besides that tries an upgrade from a release."""
    version = release.version
    name = f"kubernetes-{version}"
    return [kubernetes(name, f"v{version}", release.program, MODULES / version)]


def kubernetes(
    recipe: str,
    version: str,
    program: Callable[[str], str] = str,
    module: Path = RECIPES,
    seconds: float = 330,
) -> Recipe:
    """The programs of a release: kubeadm, kubelet, kubectl, and the control plane's in one.

    + version: with its v, which Kubernetes' own build writes into its programs
    + program: the name of each in the store
    + module: folder of its go.mod
    """
    packages = {name: f"{KUBERNETES}/cmd/{name}" for name in PROGRAMS if name != "kube"}
    packages["kube"] = "./kube"
    return go_recipe(
        recipe,
        {program(name): package for name, package in packages.items()},
        variables=version_variables(version),
        module=module,
        seconds=seconds,
    )


def version_variables(version: str) -> dict[str, str]:
    """What Kubernetes' own build sets at link time, by variable. + version: with its v"""
    major, minor, _ = version.removeprefix("v").split(".")
    stamp = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return {f"k8s.io/component-base/version.{key}": text for key, text in stamp.items()}
