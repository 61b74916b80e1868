"""Settings of GPUs that several pods share: MIG, time-slicing, MPS."""

from typing import Annotated, Literal

from pydantic import Field

from gpuboot.config.settings.base import Form, Model

# mig-parted's names of layouts that are alike on all GPUs write a profile's + as a dot
Layout = Annotated[
    str,
    Form(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", "the name of a MIG layout", "all-1g.10gb", longest=40),
]
MigProfile = Annotated[str, Form(r"\d+g\.\d+gb([+-](me|gfx)(\.all)?)?", "a MIG profile", "1g.10gb")]


class MigPart(Model):
    """GPUs of a node, and the MIG instances that each of them is divided into."""

    gpus: Literal["all"] | tuple[Annotated[int, Field(ge=0)], ...] = Field(
        "all", description="By the index that nvidia-smi gives them, e.g. `[0, 1]`; or all."
    )
    instances: dict[MigProfile, Annotated[int, Field(ge=1)]] = Field(
        {},
        description='Profile -> how many of it each GPU gets, e.g. `{"3g.40gb": 1, "1g.10gb": 2}`; '
        "none: these GPUs stay whole.",
    )


class Share(Model):
    """How the GPUs of some nodes are shared. Time-slicing and MPS exclude each other."""

    mig: Layout | None = Field(
        None,
        description="The MIG layout of all GPUs of a node: `all-1g.10gb` and its like, "
        "`all-balanced`, `all-disabled`, or a name of `mig_layouts`. Without it gpuboot leaves the "
        "layout as it is.",
    )
    time_slices: int = Field(
        1, ge=1, le=64, description="Pods that take turns on a GPU, or on each MIG instance."
    )
    mps: int = Field(
        1,
        ge=1,
        le=48,
        description="Pods that compute on a GPU at the same time by CUDA MPS, each with an equal "
        "part of its memory. Not with MIG.",
    )
    one_per_pod: bool = Field(
        False,
        description="With `time_slices`: refuse pods that ask for more than one part, which would "
        "not get more of a GPU by it. With `mps` that is always so.",
    )

    @property
    def replicas(self) -> int:
        """How many pods may hold the same GPU or MIG instance."""
        return max(self.time_slices, self.mps)
