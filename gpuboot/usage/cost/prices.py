"""What a GPU hour and a kWh cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpuboot.usage.cost.errors import CostError


@dataclass(frozen=True)
class Prices:
    """Prices in one currency.

    + gpu_hour: model (`*`: all others) -> price of a GPU for an hour
    + kwh: price of a kWh, None: energy is not charged
    + pue: what the data centre takes for each kWh of a GPU
    """

    currency: str = "USD"
    gpu_hour: Mapping[str, float] = field(default_factory=dict)
    kwh: float | None = None
    pue: float = 1.0

    def of(self, model: str) -> float | None:
        """The price of an hour of this model; None: it has none."""
        return self.gpu_hour.get(model, self.gpu_hour.get("*"))

    @property
    def is_known(self) -> bool:
        """Whether anything has a price."""
        return bool(self.gpu_hour) or self.kwh is not None


def from_settings(cost: Mapping[str, Any]) -> Prices:
    """Prices of the settings `cost`, as JSON has them; {}: no prices."""
    return Prices(
        cost.get("currency", "USD"),
        dict(cost.get("gpu_hour", {})),
        cost.get("energy_kwh"),
        cost.get("pue", 1.0),
    )


def with_options(prices: Prices, options: Sequence[str], currency: str | None) -> Prices:
    """Prices of the command line over those of the settings.

    + options: MODEL=PRICE

    Raises `CostError` for what is no price.
    """
    models = dict(_price(text) for text in options)
    return replace(
        prices,
        currency=currency or prices.currency,
        gpu_hour={**prices.gpu_hour, **models},
    )


def check_models(options: Sequence[str], known_models: Iterable[str]) -> None:
    """Raise `CostError` where a price was given for a model that the report does not have."""
    models = sorted(known_models)
    for text in options:
        model = _price(text)[0]
        if model != "*" and model not in models:
            raise CostError(
                f"there is a price for {model!r}, and no GPU of this model",
                f"one of: {', '.join(models)}; or * for all",
            )


def _price(text: str) -> tuple[str, float]:
    model, _, number = text.rpartition("=")
    try:
        price = float(number)
    except ValueError:
        price = -1.0
    if not model or not 0 <= price < float("inf"):
        raise CostError(f"{text!r} is no price", "such as --price 'NVIDIA H100 80GB HBM3=2.50'")
    return model, price
