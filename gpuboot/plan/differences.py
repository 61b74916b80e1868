"""Where two JSON values differ, path by path, and two texts, line by line. Hides what is secret."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuboot.plan.model import HIDDEN, Change

_LONGEST_DIFF = 400  # lines
# Members of a list are the same one when the first of these keys that all have agrees.
_IDENTITIES = ("name", "alert", "record", "key", "containerPort", "port")
_SECRET = re.compile(
    r"passw|secret(?!Name|Ref|Key)|token|credential|private|auth(?!or)|webhook|dsn|bearer|licen[cs]e"
    r"|htpasswd|(api|access|account|encryption|signing|tls|ssl|ssh)[-_.]?key",
    re.IGNORECASE,
)
# settings with such a word in their name, whose values are no secrets
_HARMLESS = re.compile(r"existingSecret|[sS]ecretRef|automountServiceAccountToken")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+:[^/@\s]+(?=@)")
_PRIVATE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END|$)", re.DOTALL)
_ASSIGNED = re.compile(
    r"(?i)((?:passw\w*|secret|token|credentials?|api[-_]?key|bearer|authorization)[\"']?\s*[:=]\s*)"
    r"(?!\s*$)\S.*"
)


def value_changes(subject: str, old: Any, new: Any) -> list[Change]:
    """Each value that differs, with its dotted path; values of secret names are hidden.

    + subject: of the changes; + old, new: JSON values, None for what is not there
    """
    return [field_change(subject, *difference) for difference in _differences("", old, new)]


def field_change(subject: str, path: str, old: Any, new: Any) -> Change:
    """The change of a value, by its dotted path; hidden where its name says that it is secret."""
    if is_secret(path):
        return Change(subject=subject, field=path, old=old, new=new, hidden=True)
    if isinstance(old, str) and isinstance(new, str) and ("\n" in old or "\n" in new):
        return text_change(subject, old, new, path)
    return Change(subject=subject, field=path, old=_safe(old), new=_safe(new))


def text_change(subject: str, old: str | None, new: str | None, field: str = "") -> Change:
    """A text as the lines that differ. + old, new: None where there is none"""
    if old is None or new is None:
        count = len((new or old or "").splitlines())
        size = f"{count} {'line' if count == 1 else 'lines'}"
        return Change(
            subject=subject,
            field=field,
            old=None if old is None else size,
            new=None if new is None else size,
        )
    return Change(subject=subject, field=field, diff=_diff(old, new))


def safe_text(text: str) -> str:
    """A text without passwords in addresses, private keys, and what is assigned to secrets."""
    text = _CREDENTIALS.sub("***", text)
    text = _PRIVATE.sub(HIDDEN, text)
    return "\n".join(_ASSIGNED.sub(rf"\1{HIDDEN}", line) for line in text.split("\n"))


def is_secret(path: str) -> bool:
    """Whether the last part of a dotted path names a secret."""
    last = path.rpartition(".")[2] or path
    return bool(_SECRET.search(last)) and not _HARMLESS.search(path)


def _diff(old: str, new: str) -> tuple[str, ...]:
    before, after = safe_text(old).splitlines(), safe_text(new).splitlines()
    lines = [
        line.rstrip()
        for line in difflib.unified_diff(before, after, n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    if not lines:
        return ("~ only in lines that are hidden, or at the ends of lines",)
    hidden_count = len(lines) - _LONGEST_DIFF
    return (
        *lines[:_LONGEST_DIFF],
        *([f"… and {hidden_count} more lines"] if hidden_count > 0 else []),
    )


def _safe(value: Any, path: str = "") -> Any:
    """A value without what is secret in it."""
    if isinstance(value, Mapping):
        variable_name = str(value.get("name", "")) if "value" in value else ""
        return {
            key: HIDDEN
            if is_secret(str(key)) or (key == "value" and is_secret(variable_name))
            else _safe(item)
            for key, item in value.items()
        }
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, Sequence):
        return [_safe(item) for item in value]
    return value


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if _is_equal(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _of_maps(path, old, new)
    elif isinstance(old, list) and isinstance(new, list) and (key := _identity(old, new)):
        before = {str(item[key]): item for item in old}
        after = {str(item[key]): item for item in new}
        for name in dict.fromkeys([*before, *after]):
            yield from _differences(f"{path}[{name}]", before.get(name), after.get(name))
    elif isinstance(old, list) and isinstance(new, list) and max(len(old), len(new)) > 3:
        yield from ((f"{path}[]", item, None) for item in old if item not in new)
        yield from ((f"{path}[]", None, item) for item in new if item not in old)
        if not any(item not in new for item in old) and len(old) == len(new):
            yield f"{path}[]", "an order", "another order"
    else:
        yield path, old, new


def _of_maps(
    path: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    if "value" in old and "value" in new and is_secret(str(new.get("name", ""))):
        # an environment variable: its name tells what its value is
        yield f"{path}.{new['name']}", old["value"], new["value"]
        return
    for key in sorted({*map(str, old), *map(str, new)}):
        yield from _differences(f"{path}.{key}" if path else key, old.get(key), new.get(key))


def _identity(old: Sequence[Any], new: Sequence[Any]) -> str:
    """The key by which the members of two lists are told apart; "" when there is none."""
    members = [*old, *new]
    if not members or not all(isinstance(item, Mapping) for item in members):
        return ""
    for key in _IDENTITIES:
        if all(key in item for item in members) and all(
            len({str(item[key]) for item in items}) == len(items) for items in (old, new)
        ):
            return key
    return ""


def _is_equal(old: Any, new: Any) -> bool:
    return json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)
