"""A timer on nodes with NVSwitches, by which Prometheus learns of their fatal errors."""

from collections.abc import Mapping

from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.files import operations as files
from deploys.parts.files.fact import Files
from deploys.parts.units import operations as units
from deploys.parts.units.fact import Units
from gpuboot.hosts import nvswitch_errors
from gpuboot.plan import Effect


@operation()
def watched(program: str, contents: Mapping[str, str]) -> Commands:
    """Ensure that the timer runs.

    + program: text of what it calls; contents: path -> text of its units
    """
    timers = [nvswitch_errors.TIMER]
    foresee(
        [
            (host, Files, {"paths": [nvswitch_errors.PROGRAM]}),
            (host, Files, {"paths": list(contents)}),
            (host, Units, {"units": timers}),
        ]
    )
    running = read(Units, units=timers)
    yield from files.present._inner({nvswitch_errors.PROGRAM: program}, mode="755")
    changed = yield from files.of_units(contents)
    yield from units.ensured(timers)
    if changed and running:
        yield StringCommand("systemctl restart", *timers)


@operation()
def unwatched(metrics: str) -> Commands:
    """Ensure that nothing of it is left. + metrics: folder that node-exporter reads"""
    paths, timers = list(nvswitch_errors.traces(metrics)), [nvswitch_errors.TIMER]
    foresee([(host, Files, {"paths": paths}), (host, Units, {"units": timers})])
    if not read(Files, paths=paths):
        host.noop("nothing tells of errors of NVSwitches here")
        return
    if read(Units, units=timers):
        changes.record(Effect(kind="restart", target=timers[0], note="it stops", local=True))
        yield StringCommand("systemctl disable --now", *timers)
    yield from files.of_units({}, absent=paths)
