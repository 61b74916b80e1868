"""All checks that are one file, of hosts and of the cluster, in the order of their names."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any

from gpuboot.verify.checks import of_cluster, of_hosts
from gpuboot.verify.checks.one_file import ClusterCheck, HostCheck


def found_in(package: ModuleType) -> tuple[Any, ...]:
    """The `CHECK` of each module of a package, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(import_module(f"{package.__name__}.{name}").CHECK for name in names)


HOST_CHECKS: tuple[HostCheck, ...] = found_in(of_hosts)
CLUSTER_CHECKS: tuple[ClusterCheck, ...] = found_in(of_cluster)
