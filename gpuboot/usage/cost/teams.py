"""Which team a namespace belongs to: by a mapping file, else by its label `team`."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import yaml

from gpuboot.usage.cost.errors import CostError
from gpuboot.usage.cost.readings import Carried, table
from gpuboot.usage.series import History

UNOWNED = "__unowned__"
_REMEDY = "a YAML or JSON file of `namespace: team`, or a CSV file with columns namespace and team"


class Teams:
    """The team of each namespace at each time; `__unowned__` where nobody says so.

    + mapping: namespace -> team; it wins over labels
    """

    def __init__(self, history: History, mapping: Mapping[str, str]) -> None:
        self._mapping = mapping
        labels: dict[str, dict[int, dict[str, float]]] = {}
        for step, values in table(history, "teams", "namespace", "label_team").items():
            for (namespace, team), minutes in values.items():
                labels.setdefault(namespace, {}).setdefault(step, {})[team] = minutes
        self._labels = {
            namespace: Carried(team_minutes) for namespace, team_minutes in labels.items()
        }

    def of(self, namespace: str, step: int) -> str:
        """The team that has the namespace for most of a step."""
        if team := self._mapping.get(namespace):
            return team
        if namespace not in self._labels:
            return UNOWNED
        minutes = self._labels[namespace].at(step, {})
        return max(minutes, key=lambda team: (minutes[team], team))


def read_mapping(path: Path) -> dict[str, str]:
    """Namespace -> team, of a file. Raises `CostError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CostError(f"{path}: {error.strerror}", _REMEDY) from None
    if path.suffix == ".csv":
        rows = csv.DictReader(StringIO(text))
        if not {"namespace", "team"} <= set(rows.fieldnames or ()):
            raise CostError(f"{path}: no columns namespace and team", _REMEDY)
        return {row["namespace"]: row["team"] for row in rows if row["namespace"] and row["team"]}
    try:
        mapping = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CostError(f"{path}: {error}", _REMEDY) from None
    if not isinstance(mapping, dict) or not all(
        isinstance(value, str) for pair in mapping.items() for value in pair
    ):
        raise CostError(f"{path}: no mapping of names", _REMEDY)
    return mapping
