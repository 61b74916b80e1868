"""Another driver, toolkit, containerd or kubelet on a node of a living cluster: what it disturbs.

Pure judgements; `deploys.parts.nodes.operations` acts on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from gpuboot.hosts.module_loading import CONFLICTING

# of a node that is not proven after its upgrade: its taint, and the annotation with the reason
KEY = "gpuboot.io/upgrade"
TAINT = f"{KEY}=failed:NoSchedule"
Drain = Literal["when-needed", "always", "never"]
_LONGEST = 1000  # characters of an annotation


def mismatched(expected: Mapping[str, str], installed: Mapping[str, str]) -> dict[str, str]:
    """Packages of `expected` that are not installed at their version, a pattern ("": any)."""
    return {
        name: pattern
        for name, pattern in expected.items()
        if name not in installed or not fnmatchcase(installed[name], pattern or "*")
    }


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What a node lacks of what it is to have.

    + driver, toolkit, containerd: packages -> versions to install
    + version: of the driver that is to be loaded; "" where it is not gpuboot's
    + loaded: version of the one that is, or the name of another driver; "" for none
    + installed: versions of packages that are there
    + kubelet: packages of it and of what comes with it; kubelet_due: its upgrade is not done
    + minor: to a newer minor release of Kubernetes
    """

    driver: Mapping[str, str] = field(default_factory=dict)
    toolkit: Mapping[str, str] = field(default_factory=dict)
    containerd: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    loaded: str = ""
    installed: Mapping[str, str] = field(default_factory=dict)
    kubelet: Mapping[str, str] = field(default_factory=dict)
    kubelet_due: bool = False
    minor: bool = False

    @property
    def packages(self) -> dict[str, str]:
        """All packages that are to be installed."""
        return {**self.driver, **self.toolkit, **self.containerd, **self.kubelet}

    def __bool__(self) -> bool:
        return bool(self.packages) or self.kubelet_due or self.loaded != self.version

    @property
    def module(self) -> str:
        """What is loaded instead of the wanted driver, so that only a reboot ends it; else ""."""
        if not self.loaded or self.loaded == self.version or not self.version:
            return ""
        return self.loaded if self.loaded in CONFLICTING else f"driver {self.loaded}"

    @property
    def ends_gpu_pods(self) -> bool:
        """Whether programs on GPUs end, or cannot start again, before the node is proven.

        With other libraries than the loaded module's, each new one fails by "Driver/library version
        mismatch". containerd and the toolkit can be changed under running containers.
        """
        return bool(self.module or (self.driver and self.loaded))

    def drained(self, drain: Drain) -> bool:
        """Whether pods are moved to other nodes before. + drain: `settings.upgrade.drain`"""
        needed = self.ends_gpu_pods or self.minor
        return drain == "always" or (drain == "when-needed" and needed)

    def __str__(self) -> str:
        changed = [f"driver {self.loaded or 'none'} → {self.version}"] if self.module else []
        if not changed:
            changed = ["driver"] if self.driver else []
        changed += [
            name
            for name, is_due in (
                ("toolkit", self.toolkit),
                ("containerd", self.containerd),
                ("kubelet", self.kubelet_due),
            )
            if is_due
        ]
        return ", ".join(changed)


def missing_gpus(before: Sequence[str], now: Sequence[str]) -> str:
    """UUIDs that were there before an upgrade and are not now, as a sentence; "" for none."""
    missing = [uuid for uuid in before if uuid not in now]
    return f"nvidia-smi no longer lists {', '.join(missing)}, as it did before" if missing else ""


def annotation(text: str) -> str:
    """A reason as an annotation has it: one line."""
    return " ".join(text.split())[:_LONGEST]
