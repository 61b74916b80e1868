"""MIG layouts of Docker hosts: made where GPUs have another one, and at every boot."""

from collections import Counter
from collections.abc import Iterator, Mapping

from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands, fail
from deploys.engine.operation import operation
from deploys.parts.files import operations as files
from deploys.parts.files.fact import Files
from deploys.parts.mig.fact import MigLayout, MigState
from deploys.parts.units import operations as units
from deploys.parts.units.fact import Units
from gpuboot.docker import docker_mig
from gpuboot.plan import Change, Effect, KeptItem, Unknown

_WITHOUT = {
    "off": "MIG is off",
    "none": "MIG is on, no instance",
    "absent": "nvidia-smi does not list it",
}


@operation()
def partitioned(layout: str, program: str, contents: Mapping[str, str]) -> Commands:
    """Ensure that GPUs are divided so, now and after a boot.

    What watches GPUs and is gpuboot's, or the system's, ends and starts again around a change. Any
    other process or container on a GPU that has to change fails the host: nothing is changed then.

    + layout: what the program's file says
    + program: its text; contents: path -> text of its file and unit
    """
    foresee(
        [
            (host, MigLayout, {"layout": layout}),
            (host, Files, {"paths": [docker_mig.PROGRAM]}),
            (host, Files, {"paths": list(contents)}),
            (host, Units, {"units": [docker_mig.UNIT]}),
        ]
    )
    state = read(MigLayout, layout=layout)
    if state.error:
        # while pyinfra prepares: an operation before this one will install the driver
        changes.record(Unknown(what="the GPUs' MIG layout", until="the driver answers"))
        yield fail(f"the GPUs cannot be divided: {state.error}", "run `nvidia-smi` there first")
        return
    changes.record(*_items(state, layout))
    if state.used:
        yield fail(*_refusal(state))
        return
    yield from files.present._inner({docker_mig.PROGRAM: program}, mode="755")
    yield from files.of_units(contents)
    yield from units.ensured([docker_mig.UNIT], started=False)
    if state.differs:
        yield StringCommand(docker_mig.PROGRAM, "apply")


def _items(state: MigState, layout: str) -> Iterator[Change | Effect | KeptItem]:
    desired = {line.split()[0]: line.split()[1:] for line in layout.splitlines()}
    for gpu, profiles in state.differs:
        new = _describe_profiles(" ".join(desired[str(gpu)]) or "off")
        yield Change(
            subject=f"GPU {gpu}", field="MIG instances", old=_describe_profiles(profiles), new=new
        )
    for gpu, user in state.used:
        yield KeptItem(
            what=f"GPU {gpu}", why=f"{user} uses it, and the run fails; stop that before"
        )
    if not state.used:
        for name in state.restarts:
            note = "it stops while GPUs are divided"
            yield Effect(kind="restart", target=name, note=note, local=True)


def _describe_profiles(profiles: str) -> str:
    """Profiles of a GPU in words. + profiles: as the program prints them"""
    if profiles in _WITHOUT:
        return _WITHOUT[profiles]
    if profiles.startswith("all-"):
        return f"{profiles}, as its driver has it"
    return ", ".join(f"{count} x {name}" for name, count in Counter(profiles.split()).items())


def _refusal(state: MigState) -> tuple[str, str]:
    users = ", ".join(dict.fromkeys(user for _, user in state.used))
    gpus = ", ".join(dict.fromkeys(str(gpu) for gpu, _ in state.used))
    return (
        f"a MIG layout cannot change under what uses a GPU; {users} hold GPU {gpus}: nothing was "
        "changed",
        "stop them there (`docker stop NAME` for a container), then run again",
    )
