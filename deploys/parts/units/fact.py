"""systemd units, many in one command."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deploys.engine.framed import Framed


class Units(Framed[dict[str, tuple[str, str]]]):
    """ActiveState and UnitFileState by unit, of those that exist. One may be masked and run."""

    default = dict

    @classmethod
    def merged(
        cls, arguments: Sequence[Mapping[str, Any]]
    ) -> tuple[type[Framed[dict[str, tuple[str, str]]]], dict[str, Any]]:
        return cls, {
            "units": list(dict.fromkeys(unit for item in arguments for unit in item["units"]))
        }

    @classmethod
    def part(
        cls, combined: dict[str, tuple[str, str]], arguments: Mapping[str, Any]
    ) -> dict[str, tuple[str, str]]:
        return {unit: combined[unit] for unit in arguments["units"] if unit in combined}

    def command(self, units: Iterable[str]) -> str:
        names = " ".join(shlex.quote(unit) for unit in units)
        return f"systemctl show -p Id -p LoadState -p ActiveState -p UnitFileState {names}"

    def process(self, output: list[str]) -> dict[str, tuple[str, str]]:
        units = {}
        for block in "\n".join(output).split("\n\n"):
            values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            if values.get("LoadState") in ("loaded", "masked"):
                units[values["Id"]] = (values["ActiveState"], values["UnitFileState"])
        return units
