"""How values look: Grafana's units, thresholds, states and colours."""

from __future__ import annotations

import math
from typing import Any

Object = dict[str, Any]

COLOURS = {
    "green": "#73bf69",
    "yellow": "#fade2a",
    "orange": "#ff9830",
    "dark-orange": "#fa6400",
    "semi-dark-orange": "#ff780a",
    "red": "#f2495c",
    "dark-red": "#c4162a",
    "semi-dark-red": "#e02f44",
    "blue": "#5794f2",
    "super-light-blue": "#c0d8ff",
    "purple": "#b877d9",
    "text": "#ccccdc",
}
# Far enough apart, and from the dark page, that a legend can be read.
PALETTE = (
    *("#73bf69", "#f2cc0c", "#5794f2", "#ff780a", "#f2495c", "#b877d9", "#2bd6ee", "#e0e0e0"),
    *("#a6761d", "#ff9cc8", "#1f9e89", "#c8f2c2", "#8f3bb8", "#ffcb7d", "#3264c9", "#37872d"),
    *("#c4162a", "#aea2e0", "#8d99ae", "#fff899", "#0e7c86", "#d6409f", "#b7410e", "#7a8c00"),
)
_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2**20, "TiB"), (2**10, "GiB"), (1, "MiB"))
_SI_UNITS = {"watt": "W", "joule": "J", "Bps": "B/s", "hertz": "Hz", "kwatth": "kWh", "short": ""}
_TIMES = {"s": ((86400, "days"), (3600, "hours"), (60, "mins"), (1, "s"))}


def format_value(value: float, unit: str, decimals: int | None = None) -> str:
    """A value as Grafana writes it. + unit: Grafana's id of the unit"""
    if math.isnan(value):
        return "NaN"
    if unit == "percentunit":
        return f"{value * 100:.{_places(value * 100, decimals)}f} %"
    if unit == "celsius":
        return f"{value:.{_places(value, decimals)}f} °C"
    if unit == "mbytes":
        return _scaled(value, _BINARY, decimals)
    if unit.startswith("suffix:"):
        return f"{value:.{_places(value, decimals)}f} {unit.removeprefix('suffix:')}"
    if unit in _TIMES:
        return _scaled(value, _TIMES[unit], decimals)
    if unit.startswith("currency"):
        return f"{unit.removeprefix('currency').strip(':')} {value:,.{decimals or 2}f}"
    return _si(value, _SI_UNITS.get(unit, unit), decimals)


def _si(value: float, unit: str, decimals: int | None) -> str:
    for size, letter in _SI if unit != "kWh" else ():
        if abs(value) >= size:
            number = value / size
            return f"{number:.{_places(number, decimals)}f} {letter}{unit}".strip()
    return f"{value:.{_places(value, decimals)}f} {unit}".strip()


def _scaled(value: float, sizes: tuple[tuple[float, str], ...], decimals: int | None) -> str:
    smallest = sizes[-1] if value else next(s for s in sizes if s[0] == 1)
    size, name = next((s for s in sizes if abs(value) >= s[0]), smallest)
    number = value / size
    return f"{number:.{_places(number, decimals)}f} {name}"


def _places(number: float, decimals: int | None) -> int:
    if decimals is not None:
        return decimals
    return 0 if number == round(number) or abs(number) >= 100 else 1 if abs(number) >= 10 else 2


def colour(name: str) -> str:
    """A colour of Grafana's as CSS writes it."""
    return COLOURS.get(name, name)


def at_threshold(value: float, thresholds: Object | None) -> str:
    """The colour that thresholds give a value."""
    name = "text"
    for step in (thresholds or {}).get("steps", []):
        if step["value"] is None or value >= step["value"]:
            name = step["color"]
    return colour(name)


def state(value: float, mappings: list[Object] | None) -> tuple[str, str] | None:
    """Text and colour of the state that a value stands for; None: for none."""
    for mapping in mappings or []:
        number = int(value) if value == int(value) else value
        option = mapping["options"].get(str(number))
        if option:
            return option["text"], colour(option["color"])
    return None


# Viridis at its quarters: the heatmap's colour scheme.
_VIRIDIS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))


def heat(share: float) -> str:
    """Colour of a heatmap's cell. + share: 0 to 1"""
    place = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    low = min(int(place), len(_VIRIDIS) - 2)
    fraction = place - low
    mixed = (
        round(a + (b - a) * fraction) for a, b in zip(_VIRIDIS[low], _VIRIDIS[low + 1], strict=True)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)
