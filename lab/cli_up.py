"""`scripts/lab up`: bring a lab up, and deploy gpuboot to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from lab import settings
from lab.build.progress import Progress
from lab.build.software import kubernetes_version
from lab.debian_releases import DEBIAN_RELEASES
from lab.gpusim.builds import DRIVER_VERSIONS
from lab.lives import lives
from lab.mirror import docroot
from lab.state import Extra, Lab, LabError

ROOT = Path(__file__).parents[1]
# of the mirror's lock: the settings with which these labs are deployed
_PREVIOUS: dict[Extra | None, str] = {
    "previous-release": "previous",
    "previous-patch": "previous_patch",
}

_Name = Annotated[
    str, typer.Option("--name", help="The lab's name; default: lab, or as the kind of lab.")
]
_Gpus = Annotated[
    str, typer.Option(help="Simulated GPUs of each worker; default: 2,4 (--single: 2).")
]
_Single = Annotated[
    bool, typer.Option("--single", help="One machine that is control plane and worker.")
]
_ControlPlanes = Annotated[
    int, typer.Option("--control-planes", help="Control-plane machines: 1, or 3 with etcd on each.")
]
_Docker = Annotated[
    bool, typer.Option("--docker", help="One machine with Docker instead of a cluster.")
]
_PreviousRelease = Annotated[
    bool,
    typer.Option(
        "--previous-release", help="Deploy the releases before today's, to try an upgrade."
    ),
]
_PreviousPatch = Annotated[
    bool,
    typer.Option("--previous-patch", help="Deploy the patch release of Kubernetes before today's."),
]
_Upstream = Annotated[
    bool,
    typer.Option(
        "--upstream",
        help="Take packages, charts and images from their publishers; only what is simulated "
        "is built. Needs the internet. UNTRIED: it was written without.",
    ),
]
_Used = Annotated[
    bool,
    typer.Option("--used", help="Machines that were used before: with the lives of --life."),
]
_Life = Annotated[
    list[str] | None,
    typer.Option(
        "--life",
        metavar="NAME",
        help="With --used, again for more: a life that the machines had "
        "(lab/lives). Default: all that gpuboot is deployed to.",
    ),
]
_Debian = Annotated[str, typer.Option(help="The machines' release of Debian: 12 or 13.")]
_Deploy = Annotated[bool, typer.Option(help="Deploy gpuboot to the machines.")]


def up(
    name: _Name = "",
    gpus: _Gpus = "",
    single: _Single = False,
    control_planes: _ControlPlanes = 1,
    docker: _Docker = False,
    previous_release: _PreviousRelease = False,
    previous_patch: _PreviousPatch = False,
    upstream: _Upstream = False,
    used: _Used = False,
    life: _Life = None,
    debian: _Debian = "12",
    deploy: _Deploy = True,
) -> None:
    """Bring the lab up and deploy gpuboot to it; the exit code is the deployment's."""
    from lab.up import up as bring_up  # other commands start faster without it

    extras: dict[Extra, bool] = {
        "docker": docker,
        "previous-release": previous_release,
        "previous-patch": previous_patch,
    }
    extra = _one_of(extras, {"upstream": upstream, "used": used})
    if life and not used:
        raise LabError("--life is for a lab of used machines: --used")
    if debian not in DEBIAN_RELEASES:
        raise LabError(f"machines run Debian {' or '.join(DEBIAN_RELEASES)}, not {debian!r}")
    kind = "upstream" if upstream else "used" if used else "single" if single else "lab"
    name, worn = name or extra or kind, lives(life or ()) if used else []
    one_machine, release = single or docker, DEBIAN_RELEASES[debian]
    counts = _counts(gpus or ("2" if one_machine else "2,4"))
    say = progress()
    try:
        arguments = (extra, release, upstream, control_planes, worn)
        lab = bring_up(name, counts, one_machine, say, *arguments)
        code = _deploy(lab, extra, deploy, say)
    except KeyboardInterrupt:
        print("lab: interrupted; the same command goes on from here", file=sys.stderr)
        code = 130
    raise typer.Exit(code)


def _one_of(extras: Mapping[Extra, bool], other_options: Mapping[str, bool]) -> Extra | None:
    """The extra that is chosen. Raises `LabError` when more than one kind of lab is."""
    if sum([*extras.values(), *other_options.values()]) > 1:
        raise LabError(f"choose one of --{', --'.join([*extras, *other_options])}")
    return next((name for name, is_selected in extras.items() if is_selected), None)


def _deploy(lab: Lab, extra: Extra | None, deploy: bool, say: Progress) -> int:
    """Run pyinfra against the lab, or only tell how; its exit code, as a shell would have it."""
    docker = extra == "docker"
    prefix = "" if lab.name == "lab" else f"GPUBOOT_LAB={lab.name} "
    site = ["inventories/lab_docker.py", "deploys/standalone.py"]
    command = ["pyinfra", *(site if docker else ["inventories/lab.py", "deploys/site.py"]), "-y"]
    if not deploy:
        say(f"to deploy: {prefix}{' '.join(command)}")
        return 0
    say(f"deploy: {prefix}{' '.join(command)}")
    pyinfra = Path(sys.executable).with_name("pyinfra")
    environment = {**os.environ, "GPUBOOT_LAB": lab.name}
    if extra in _PREVIOUS:
        previous = settings.previous_release(lab.name, _PREVIOUS[extra])
        environment[settings.SETTINGS_VARIABLE] = previous
        _withhold(lab, extra)
    result = subprocess.run([str(pyinfra), *command[1:]], cwd=ROOT, env=environment)
    if extra in _PREVIOUS:
        docroot.restore(lab)
    say(f"deploy: exit code {result.returncode}")
    return result.returncode if result.returncode >= 0 else 128 - result.returncode


def _withhold(lab: Lab, extra: Extra | None) -> None:
    """Have machines read indices of before today's release, as those of a site that lives."""
    if extra == "previous-patch":
        docroot.withhold(lab, "kubernetes", kubernetes_version().removeprefix("v"))
    else:
        docroot.withhold(lab, "cuda", DRIVER_VERSIONS[0])


def _counts(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise LabError(f"--gpus takes numbers such as 2,4, not {text!r}") from None


def progress() -> Progress:
    """Lines on stderr, with the seconds since now."""
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"[{time.monotonic() - started:6.1f} s] {line}", file=sys.stderr, flush=True)

    return say
