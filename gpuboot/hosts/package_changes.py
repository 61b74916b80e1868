"""What installed packages change, and which services their installation restarts."""

from collections.abc import Iterable, Mapping

from gpuboot.hosts.package_rehearsal import Rehearsal
from gpuboot.plan.model import Change, Effect, Item, Unknown

# Package -> service that its installation restarts where it runs already, and what goes on: by the
# maintainer scripts of Docker's and NVIDIA's packages.
_RESTARTED = {
    "containerd.io": ("containerd", "running containers go on"),
    "docker-ce": ("dockerd", "containers stop unless live-restore is on"),
    "nvidia-persistenced": ("nvidia-persistenced", "running CUDA programs go on"),
    "nvidia-fabricmanager": ("nvidia-fabricmanager", ""),
}


def package_changes(
    versions: Mapping[str, str], requested: Mapping[str, str], unheld: Iterable[str] = ()
) -> list[Item]:
    """What installing packages changes.

    + versions: installed packages -> version
    + requested: packages to install -> version or its pattern; "": the newest available
    + unheld: packages that are to be held and are not
    """
    changes: list[Item] = [
        Change(
            subject=f"package {name}",
            field="version",
            old=versions.get(name),
            new=version or "(newest available)",
        )
        for name, version in requested.items()
    ]
    changes += [
        Change(subject=f"package {name}", field="held", old=False, new=True)
        for name in unheld
        if name not in requested
    ]
    changes += [
        Effect(kind="restart", target=service, local=True, note=note)
        for name, (service, note) in _RESTARTED.items()
        if name in requested and name in versions
    ]
    return changes


def rehearsed_changes(rehearsal: Rehearsal) -> list[Item]:
    """What a run's packages change beside themselves: what goes, and what nobody would expect."""
    if rehearsal.error:
        subject = f"which packages the run's own remove ({rehearsal.error})"
        return [Unknown(what=subject, until="the run installs them")]
    transaction = rehearsal.transaction
    removals: list[Item] = [
        Change(subject=f"package {name}", field=_field("version", rehearsal.reasons(name)), old=old)
        for name, old in sorted(transaction.removed.items(), key=lambda item: (item[1], item[0]))
    ]
    return removals + [
        Change(subject=f"package {name}", field=_field("version", signs), old=old or None, new=new)
        for name, (old, new) in transaction.installed.items()
        if (signs := _signs(name in transaction.held_packages, name in transaction.downgraded))
    ]


def _field(name: str, details: Iterable[str]) -> str:
    text = ", ".join(details)
    return f"{name} ({text})" if text else name


def _signs(is_held: bool, downgraded: bool) -> list[str]:
    return [*(["held"] if is_held else []), *(["downgraded"] if downgraded else [])]
