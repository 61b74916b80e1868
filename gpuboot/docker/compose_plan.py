"""What changes in a compose project, and which of its services that concerns."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import yaml

from gpuboot.docker.compose import COMPOSE, File, Project
from gpuboot.plan.differences import text_change, value_changes
from gpuboot.plan.model import Change, Effect, Item


def project_changes(
    project: Project,
    differing_files: Sequence[File],
    old: Mapping[str, str],
    running: Collection[str],
    existing: Collection[str],
    strays: Sequence[str],
) -> list[Item]:
    """What bringing a project up changes.

    + differing_files: files that are to be written
    + old: path -> text of those that are there and hold no secret
    + running: services with a container that runs; + existing: paths of files that are there
    + strays: files of earlier runs that go
    """
    changes: list[Item] = []
    before, after = _services(old.get(COMPOSE)), _services(_text(differing_files, COMPOSE))
    for file in differing_files:
        subject = f"file {project.folder}/{file.path}"
        if file.path == COMPOSE and before:
            changes += value_changes(subject, before, after)
        elif file.mode == "644" and file.path in old:
            changes.append(text_change(subject, old[file.path], file.text or ""))
        else:
            old_state = "" if file.path in existing else None
            changes.append(Change(subject=subject, old=old_state, new="", hidden=True))
    changes += [Change(subject=f"file {project.folder}/{path}", old="present") for path in strays]
    missing = [name for name in project.services if name not in running]
    changes += [Change(subject=f"container {name}", new="running") for name in missing]
    return [*changes, *_effects(project, differing_files, before, after, running)]


def _effects(
    project: Project,
    differing_files: Sequence[File],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    running: Collection[str],
) -> list[Effect]:
    recreated = {
        name for name in running if before and after and before.get(name) != after.get(name)
    }
    notified = {file.service for file in differing_files if file.service} & set(running)
    effects = [
        Effect(kind="restart", target=f"container {name}", local=True, note="made again")
        for name in sorted(recreated)
    ]
    for name in sorted(notified - recreated):
        reloads = project.reloads.get(name) == "SIGHUP"
        effects.append(
            Effect(kind="reload" if reloads else "restart", target=f"container {name}", local=True)
        )
    return effects


def _text(files: Sequence[File], path: str) -> str | None:
    return next((file.text for file in files if file.path == path), None)


def _services(text: str | None) -> dict[str, Any]:
    services: dict[str, Any] = (yaml.safe_load(text) or {}).get("services", {}) if text else {}
    return services
