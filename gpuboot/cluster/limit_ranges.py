"""Limits that a LimitRange of a namespace gives to containers that ask for none."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

ANNOTATION = "kubernetes.io/limit-ranger"
# Kubernetes 1.36.3, plugin/pkg/admission/limitranger/admission.go, mergeContainerResources
_SET = re.compile(r"(?:^LimitRanger plugin set: |; )([^;]+) limit for (?:init )?container ([^;]+)")


@dataclass(frozen=True)
class LimitRange:
    """A LimitRange. + memory: the limit that it gives to a container without one; "" for none"""

    namespace: str
    name: str
    memory: str = ""


def limit_range(item: Json) -> LimitRange:
    """A LimitRange of the API."""
    meta = item["metadata"]
    defaults = [
        entry["default"]["memory"]
        for entry in item.get("spec", {}).get("limits") or ()
        if entry.get("type") == "Container" and "memory" in (entry.get("default") or {})
    ]
    return LimitRange(meta["namespace"], meta["name"], defaults[-1] if defaults else "")


def default_memory(pod: Json) -> dict[str, str]:
    """Container -> its memory limit, of those to whom a LimitRange gave it.

    + pod: of the API
    """
    annotations = pod["metadata"].get("annotations") or {}
    names = {
        name
        for resources, name in _SET.findall(annotations.get(ANNOTATION, ""))
        if "memory" in resources.split(", ")
    }
    spec = pod.get("spec", {})
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return {
        entry["name"]: ((entry.get("resources") or {}).get("limits") or {}).get("memory", "")
        for entry in containers
        if entry.get("name") in names
    }
