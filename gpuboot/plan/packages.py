"""What installed packages change, and which services their installation restarts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuboot.plan.model import Change, Effect, Item

# Package -> service that its installation restarts where it runs already, and what goes on: by the
# maintainer scripts of Docker's and NVIDIA's packages.
_RESTARTED = {
    "containerd.io": ("containerd", "running containers go on"),
    "docker-ce": ("dockerd", "containers stop unless live-restore is on"),
    "nvidia-persistenced": ("nvidia-persistenced", "running CUDA programs go on"),
    "nvidia-fabricmanager": ("nvidia-fabricmanager", ""),
}


def package_changes(
    versions: Mapping[str, str], wanted: Mapping[str, str], unheld: Iterable[str] = ()
) -> list[Item]:
    """What installing packages changes.

    + versions: installed packages -> version
    + wanted: packages to install -> version or its pattern; "": the newest available
    + unheld: packages that are to be held and are not
    """
    changes: list[Item] = [
        Change(
            subject=f"package {name}",
            field="version",
            old=versions.get(name),
            new=version or "(newest available)",
        )
        for name, version in wanted.items()
    ]
    changes += [
        Change(subject=f"package {name}", field="held", old=False, new=True)
        for name in unheld
        if name not in wanted
    ]
    changes += [
        Effect(kind="restart", target=service, local=True, note=note)
        for name, (service, note) in _RESTARTED.items()
        if name in wanted and name in versions
    ]
    return changes
