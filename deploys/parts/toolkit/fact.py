"""NVIDIA's container toolkit: how its runtime lets a container request GPUs."""

import shlex
from dataclasses import dataclass, field

from deploys.engine.framed import Framed
from gpuboot.hosts.fact_output import Fields


@dataclass(frozen=True)
class ToolkitState:
    """What the runtime's configuration says, which it reads at the start of each container.

    + installed: the toolkit is there
    + accepts: each `accept-…` option and its value, the default where the file does not name it
    + error: why the file is no configuration; "" where it is
    """

    installed: bool = False
    accepts: dict[str, str] = field(default_factory=dict)
    error: str = ""


class Toolkit(Framed[ToolkitState]):
    """The requests for GPUs that the runtime accepts, as nvidia-ctk reads its configuration."""

    default = ToolkitState

    def command(self, path: str) -> str:
        config = f"nvidia-ctk --quiet config --config-file={shlex.quote(path)}"
        # a default is printed as a comment
        accepts = "sed -n 's/^#\\{0,1\\}\\(accept-[a-z-]*\\) = /accepts \\1 /p'"
        return (
            "if command -v nvidia-ctk >/dev/null; then echo installed; "
            f"if text=$({config} 2>&1); then printf '%s\\n' \"$text\" | {accepts}; "
            "else printf '%s\\n' \"$text\" | tail -n 3 | sed 's/^/error /'; fi; fi"
        )

    def process(self, output: list[str]) -> ToolkitState:
        values = Fields(output, separator=" ", last=None)
        return ToolkitState(
            "installed" in values, values.pairs("accepts"), "\n".join(values.raw("error"))
        )
