"""docs/settings.md from the settings model."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import Form
from gpuboot.config.settings.secret import LocalFile, Secret

_INTRO = """# Settings

Every setting, made by `gpuboot docs settings` from the model in `gpuboot/config/settings/`.

Settings stand in the inventory's group data, as a dict named `gpuboot`: for
`inventories/prod.py` in `group_data/prod.py`. Leave out what you do not want to change.

```python
gpuboot = {
    "cluster": {"name": "prod"},
    "exporter": {"counters": ["DCGM_FI_DEV_FAN_SPEED"]},
}
```

Unknown keys and values that do not go together stop a run before any host is touched, all of
them named at once. The control machine is the one that runs gpuboot. What is said about hosts
(`gpus`, `address`, `node_name`) stands in the inventory itself.
"""


# what most sites set, in the order in which they come to it: path -> reason
_FIRST: Mapping[str, str] = {
    "cluster.name": "reports, alerts and dashboards name the cluster by it",
    "cluster.pod_cidr": "where the default overlaps a network of the site; stays as it was made",
    "cluster.virtual_ip": "several control planes under one address",
    "proxy.https": "hosts that reach the internet by a proxy alone",
    "sharing": "MIG, time slices or MPS on some of the nodes",
    "monitoring.retention": "how far back dashboards, cost and forecasts see",
    "monitoring.storage.prometheus_size": "room for that",
    "alertmanager.slack": "who hears of alerts, beside `pagerduty` and `email`",
    "backup.s3": "backups of etcd that outlive the nodes; or `backup.rsync`",
    "upgrade.max_unavailable": "how many workers an upgrade may take out of service at a time",
}
# models of several settings, described once at the page's end
_SHARED: tuple[type[BaseModel], ...] = (Secret, LocalFile)


def settings_markdown() -> str:
    """The content of docs/settings.md."""
    parts = [_INTRO, _first()]
    loose: list[tuple[str, FieldInfo]] = []
    for name, info in Settings.model_fields.items():
        inner = _model(info.annotation)
        if inner is None:
            loose.append((name, info))
            continue
        parts.append(f"\n## `{name}`\n\n{_meaning(inner)}\n")
        rows = [(f"{name}.{key}", field) for key, field in inner.model_fields.items()]
        parts += [_table(iter(rows)), *_nested(rows)]
    parts.append("\n## Others\n")
    parts += [_table(iter(loose)), *_nested(loose)]
    for shared in _SHARED:
        parts.append(f"\n## Every `dict ({shared.__name__})`\n\n{_meaning(shared)}\n")
        parts.append(_table(iter(shared.model_fields.items())))
    return "\n".join(parts).rstrip() + "\n"


def _first() -> str:
    """The table of what most sites set."""
    lines = ["\n## Where to begin", "", "| Setting | Default | Why |", "|---|---|---|"]
    for path, reason in _FIRST.items():
        section, _, name = path.rpartition(".")
        fields = _section(section).model_fields
        place = section.replace(".", "") or "others"
        lines.append(f"| [`{path}`](#{place}) | {_default(fields[name])} | {reason} |")
    return "\n".join(lines) + "\n"


def _section(path: str) -> type[BaseModel]:
    """The model of a section. + path: e.g. `monitoring.storage`; "": of all settings"""
    section: type[BaseModel] = Settings
    for name in filter(None, path.split(".")):
        [section] = models(section.model_fields[name].annotation)
    return section


def _nested(rows: Iterable[tuple[str, FieldInfo]]) -> Iterator[str]:
    """Models that stand inside a field's type, each after the one that holds it.

    What has a section or a table of its own elsewhere is left out.
    """
    sections = [_model(info.annotation) for info in Settings.model_fields.values()]
    for path, field in rows:
        for inner in models(field.annotation):
            if inner in (*_SHARED, *sections):
                continue
            single = get_origin(field.annotation) not in (tuple, dict)
            title, start = (f"`{path}`", f"{path}.") if single else (f"Each value of `{path}`", "")
            yield f"\n### {title}\n\n{_meaning(inner)}\n"
            yield _table((f"{start}{name}", item) for name, item in inner.model_fields.items())
            yield from _nested((f"{path}.{key}", item) for key, item in inner.model_fields.items())


def _table(rows: Iterator[tuple[str, FieldInfo]]) -> str:
    lines = ["| Setting | Default | Values | Meaning |", "|---|---|---|---|"]
    for name, info in rows:
        cells = (f"`{name}`", _default(info), _values(info), info.description or "")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _meaning(model: type[BaseModel]) -> str:
    return inspect.getdoc(model) or ""


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True)
    if value is None:
        return "–"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, tuple):
        value = list(value)
    return f"`{value!r}`".replace("'", '"')


def _values(info: FieldInfo) -> str:
    limits = [_limit(item) for item in info.metadata]
    return ", ".join(filter(None, [_type(info.annotation), *limits]))


def _limit(item: Any) -> str:
    match item:
        case Ge(ge=value):
            return f"≥ {value}"
        case Gt(gt=value):
            return f"> {value}"
        case Le(le=value):
            return f"≤ {value}"
        case Lt(lt=value):
            return f"< {value}"
        case MaxLen(max_length=value):
            return f"at most {value} characters"
        case Form(description=description, example=example):
            return f"{description}, e.g. `{example}`"
    return ""


def _type(annotation: Any) -> str:
    """A type in words a person reads."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        limits = [_limit(part) for item in arguments[1:] for part in _metadata(item)]
        return ", ".join(filter(None, [_type(arguments[0]), *limits]))
    if origin is Literal:
        return ", ".join(f'`"{item}"`' for item in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(item) for item in arguments if item is not type(None))
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"dict: {_type(arguments[0])} → {_type(arguments[1])}"
    names = {str: "text", int: "integer", float: "number", bool: "`True`, `False`"}
    if annotation is SecretStr:
        return "text (secret)"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"dict ({annotation.__name__})"
    return names.get(annotation, "any value")


def _metadata(item: Any) -> list[Any]:
    return list(item.metadata) if isinstance(item, FieldInfo) else [item]


def _model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def models(annotation: Any) -> list[type[BaseModel]]:
    model = _model(annotation)
    return [model] if model else [m for item in get_args(annotation) for m in models(item)]
