"""Settings of teams: how many GPUs their namespaces may ask for, and whose pods go first."""

from typing import Annotated

from pydantic import Field

from gpuboot.config.settings.base import Model
from gpuboot.config.settings.sharing import MigProfile


class Team(Model):
    """A namespace of the team's name, with a ResourceQuota and a PriorityClass of its own."""

    gpus: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="GPUs that all its pods together may ask for; of GPUs that are shared, the "
        "parts are counted. Default: any number.",
    )
    mig: dict[MigProfile, Annotated[int, Field(ge=0)]] = Field(
        {},
        description="MIG profile -> instances that its pods may ask for, such as "
        '`{"1g.10gb": 14}`; any number of those that are not named.',
    )
    priority: int = Field(
        0,
        ge=-1_000_000_000,
        le=1_000_000_000,
        description="Value of the PriorityClass `team-NAME`: pods that name it go before those of "
        "a lower one.",
    )
    preempt: bool = Field(
        False, description="Its waiting pods may end pods of a lower priority to get their GPUs."
    )
