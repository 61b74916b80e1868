"""Which team a namespace belongs to: by its label `team`."""

from __future__ import annotations

from gpuboot.usage.cost.readings import Carried, table
from gpuboot.usage.series import History

UNOWNED = "__unowned__"


class Teams:
    """The team of each namespace at each time; `__unowned__` where nobody says so."""

    def __init__(self, history: History) -> None:
        labels: dict[str, dict[int, dict[str, float]]] = {}
        for step, values in table(history, "teams", "namespace", "label_team").items():
            for (namespace, team), minutes in values.items():
                labels.setdefault(namespace, {}).setdefault(step, {})[team] = minutes
        self._labels = {
            namespace: Carried(team_minutes) for namespace, team_minutes in labels.items()
        }

    def of(self, namespace: str, step: int) -> str:
        """The team that has the namespace for most of a step."""
        if namespace not in self._labels:
            return UNOWNED
        minutes = self._labels[namespace].at(step, {})
        return max(minutes, key=lambda team: (minutes[team], team))
