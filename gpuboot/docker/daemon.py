"""dockerd's configuration file: ours laid over what a site has, and how a change takes effect."""

import json
from collections.abc import Mapping
from typing import Any

from gpuboot.cluster.values import merge

Object = dict[str, Any]

# What dockerd takes over on SIGHUP (`dockerd` reference, "Configuration reload behavior").
RELOADABLE = frozenset(
    {
        "debug", "default-runtime", "features", "insecure-registries", "labels", "live-restore",
        "max-concurrent-downloads", "max-concurrent-uploads", "max-download-attempts",
        "registry-mirrors", "runtimes", "shutdown-timeout",
    }
)  # fmt: skip


def parse(text: str) -> Object:
    """The content of daemon.json; {} for no file or an empty one. Raises ValueError."""
    content = json.loads(text) if text.strip() else {}
    if not isinstance(content, dict):
        raise ValueError("daemon.json is not a JSON object")
    return content


def configuration(present: Mapping[str, Any], toolkit: Mapping[str, Any], proxied: bool,
           swarm: bool) -> Object:  # fmt: skip
    """What daemon.json ought to be. Everything that is not ours stays as it is.

    + present: what it is
    + toolkit: what NVIDIA's toolkit makes of it; {} on a host without GPUs
    + proxied: dockerd gets its proxy from its unit; what the file, which everybody reads, says of
      one would come before that
    + swarm: the host is in a Docker swarm, which does not go with live-restore

    With live-restore containers survive a restart of dockerd; a site's own setting of it stays.
    """
    merged = merge(present, toolkit)
    if proxied:
        merged.pop("proxies", None)
    if not swarm:
        merged.setdefault("live-restore", True)
    return merged


def needs_restart(present: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether dockerd has to be started again for a change, or can take it over as it runs."""
    changed = {key for key in {*present, *new} if present.get(key) != new.get(key)}
    return not changed <= RELOADABLE


def render(content: Mapping[str, Any]) -> str:
    """The text of daemon.json."""
    return json.dumps(content, indent=4) + "\n"
