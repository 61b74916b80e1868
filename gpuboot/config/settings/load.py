"""Settings of `gpuboot load`."""

from pydantic import Field

from gpuboot.config.settings.base import Model


class Load(Model):
    """Loads that make metrics move."""

    image: str | None = Field(
        None,
        description="Image of `gpuboot load`: with NVIDIA's `dcgmproftester`, or with `python3` "
        "and glibc for gpuboot's own program (docs/load.md); default: `verify.deep.dcgm_image`.",
    )
