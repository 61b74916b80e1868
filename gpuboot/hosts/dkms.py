"""DKMS: which modules it has built for which kernel, by `dkms status`.

`nvidia/595.91.07: added` has been built for no kernel; `nvidia/595.91.07, 6.8.0-90-generic, x86_64:
installed` for that one (dkms 3, show_status); DKMS 2 writes `nvidia, 595.91.07` instead.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpuboot.hosts.fact_output import Fields

_STATUS = re.compile(
    r"(?P<module>[^\s,/]+)(/|, )(?P<version>[^\s,:]+)(, (?P<kernel>[^\s,]+), [^\s:]+)?: ?"
    r"(?P<status>\w+)"
)
_BUILT_STATES = ("built", "installed")


@dataclass(frozen=True)
class DkmsState:
    """What a host's DKMS has of NVIDIA's modules.

    + status: lines of `dkms status`
    + log: of a build that failed, "" for none; errors: its last lines that say why
    + unfinished: NVIDIA's packages that dpkg has yet to configure, by which DKMS builds
    """

    status: tuple[str, ...] = ()
    log: str = ""
    errors: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


@dataclass(frozen=True)
class DkmsModule:
    """A version of a module. + kernel: for which it was built, "" for none"""

    module: str
    version: str
    kernel: str
    status: str


def parse(values: Fields) -> DkmsState:
    """What `deploys/parts/node/dkms.sh` printed, and dpkg's list, be it among other lines."""
    return DkmsState(
        status=tuple(values.all("dkms")),
        log=values.first("dkms_log"),
        errors=tuple(values.all("dkms_error")),
        unfinished=tuple(values.all("unfinished")),
    )


def parse_status(lines: Iterable[str]) -> list[DkmsModule]:
    """What lines of `dkms status` say; others are passed over."""
    return [
        DkmsModule(match["module"], match["version"], match["kernel"] or "", match["status"])
        for match in map(_STATUS.match, lines)
        if match
    ]


def not_built(lines: Iterable[str], version: str, kernel: str) -> str:
    """A driver's module that DKMS has and has not built for a kernel; "" for none."""
    of_version = [item for item in parse_status(lines) if item.version == version]
    if any(item.kernel == kernel and item.status in _BUILT_STATES for item in of_version):
        return ""
    return f"{of_version[0].module}/{version}" if of_version else ""


def problem(module: str, kernel: str, state: DkmsState) -> tuple[str, str]:
    """Cause and remedy of a module that was not built. + module: as `not_built` gives it"""
    cause = f"DKMS has {module} and has not built it for the running kernel {kernel}"
    if state.log:
        errors = "; ".join(state.errors)
        cause += f": {state.log} ends with: {errors}" if errors else f": see {state.log}"
    return (
        cause,
        f"mend what the log says, if there is one, then run `dkms install {module} -k {kernel}` "
        "there, which shows why it fails",
    )
