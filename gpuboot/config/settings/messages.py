"""What a person is told about a wrong setting: its name and what it takes, and never a secret."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gpuboot.config.problems import Problem
from gpuboot.config.settings.secret import Secret
from gpuboot.config.tables import read_table

# Settings whose values hold credentials, or may: nothing given for them is repeated.
_CONFIDENTIAL = re.compile(
    r"password|secret|token|key|webhook|url|^proxy|mirrors|headers|values|annotations|username"
)
_LONGEST = 60  # what is longer is no slip of the keyboard, and may be a secret in the wrong place
_SECRET = (
    'takes {"file": "PATH"} (a file on this machine that holds it) or {"secret": "NAME/KEY"}, '
    "not the secret itself"
)
_EXPECTATIONS = {
    "model_type": "takes a dict of settings",
    "dict_type": "takes a dict",
    "tuple_type": "takes a list",
    "string_type": "takes text",
    "invalid_key": "takes names, which are text",
    "missing": "is required",
}
Place = Sequence[int | str]


def problems(error: ValidationError, model: type[BaseModel], prefix: str = "") -> list[Problem]:
    """A problem for each mistake that pydantic found.

    + model: what was to be read
    + prefix: the setting that holds it, with a dot at its end
    """
    return [_problem(dict(item), model, prefix) for item in error.errors()]


def dotted(place: Place) -> str:
    """A setting as messages name it: `cluster.pod_cidr`, `monitoring.remote_write.0.url`."""
    return ".".join(str(part) for part in _without_addresses(place))


def _without_addresses(place: Place) -> Place:
    """The path without addresses: one in a setting's place is misplaced, and may be secret."""
    return ["…" if "://" in str(part) else part for part in place]


def _problem(error: Mapping[str, Any], model: type[BaseModel], prefix: str) -> Problem:
    place: Place = error["loc"]
    if place and place[-1] == "[key]":
        place = place[:-1]
    path = f"{prefix}{dotted(place)}"
    if error["type"] == "extra_forbidden":
        if text := next(
            (message for name, message in _removed().items() if fnmatchcase(path, name)), ""
        ):
            return Problem("", f"{path} was removed: {text}", f"take out {path}")
        return Problem("", f"unknown setting {path}", _nearest(place, model, prefix))
    if not place:
        # a rule about several settings: its text names them, and the input is all of them
        return Problem("", _message(error), "correct gpuboot in group_data")
    message = _message(error)
    if error["type"] in ("model_type", "dict_type") and _at(model, place) is Secret:
        message = _SECRET
    input_text = _describe_input(path, error.get("input"))
    keys = "".join(
        f"[{part!r}]" for part in (*filter(None, prefix.split(".")), *_without_addresses(place))
    )
    return Problem("", f"{path}: {message}{input_text}", f"correct gpuboot{keys} in group_data")


@cache
def _removed() -> dict[str, str]:
    """Path of a setting of earlier releases, with * for a name of the site's -> what is instead."""
    return read_table("config/settings/removed.toml")


def _message(error: Mapping[str, Any]) -> str:
    return _EXPECTATIONS.get(error["type"], str(error["msg"]).removeprefix("Value error, "))


def _describe_input(path: str, value: Any) -> str:
    """What was given, where it is one short value that is no secret."""
    if _CONFIDENTIAL.search(path) or not isinstance(value, (str, int, float)):
        return ""
    text = repr(value)
    return f" (given: {text})" if len(text) <= _LONGEST and "://" not in text else ""


def _nearest(place: Place, model: type[BaseModel], prefix: str) -> str:
    """The setting that was probably meant."""
    name = str(place[-1])
    section = _at(model, place[:-1])
    if near := difflib.get_close_matches(name, section.model_fields if section else (), n=1):
        return f"did you mean {prefix}{dotted([*place[:-1], near[0]])}?"
    elsewhere = {path.rpartition(".")[2]: path for path in _paths(model, "")}
    if close := difflib.get_close_matches(name, elsewhere, n=1, cutoff=0.8):
        return f"did you mean {prefix}{elsewhere[close[0]]}?"
    return "see docs/settings.md for every setting"


def _at(model: type[BaseModel], place: Place) -> type[BaseModel] | None:
    """The model that a place in the settings is to hold; None for anything else."""
    current: Any = model
    for part in place:
        if _is_model(current):
            info = current.model_fields.get(str(part))
            current = info.annotation if info else None
        elif get_origin(current) in (tuple, dict):
            current = next((item for item in get_args(current) if _model_of(item)), None)
        current = _model_of(current) or current
    return _model_of(current)


def _paths(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        yield f"{prefix}{name}"
        if inner := _model_of(info.annotation):
            yield from _paths(inner, f"{prefix}{name}.")


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The model that a type is, or is beside None."""
    if _is_model(annotation):
        model: type[BaseModel] = annotation
        return model
    if get_origin(annotation) in (tuple, dict):
        return None
    return next((item for item in get_args(annotation) if _is_model(item)), None)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
