"""DCGM's host engine on GPU nodes: installed, listening on the node alone, running."""

from collections.abc import Mapping

from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.files import operations as files
from deploys.parts.files.fact import Files
from deploys.parts.packages import operations as packages
from deploys.parts.units import operations as units
from deploys.parts.units.fact import Units
from gpuboot.cluster.node_upgrade import mismatched
from gpuboot.hosts import dcgm_engine
from gpuboot.hosts.platforms import PackageManager
from gpuboot.plan import Effect

_ABSENT = ("", "")


@operation()
def engine(
    versions: Mapping[str, str],
    manager: PackageManager,
    contents: Mapping[str, str],
    version: str,
    upgrade: bool = False,
    settle_s: int = 0,
) -> Commands:
    """Ensure that the host engine is installed at this version, held there, and runs.

    + versions: its packages and the patterns of their versions; version: DCGM's
    + contents: path -> text of what its unit gets
    + upgrade: an earlier one that is installed is upgraded; else that is left for later
    + settle_s: wait so long after a restart, until an exporter has noticed
    """
    installed, running = _installed_state(versions, manager, contents)
    if not upgrade and dcgm_engine.is_older(installed, version):
        host.noop("an earlier host engine is upgraded after the exporters that read it")
        return
    has_mismatch = bool(mismatched(versions, installed))
    yield from packages.installed._inner(versions, manager, hold=True)
    changed = yield from files.of_units(contents)
    yield from units.ensured([dcgm_engine.UNIT])
    if running and (has_mismatch or changed):
        note = "its exporter ends and starts again; DCGM forgets health watches and job statistics"
        changes.record(Effect(kind="restart", target=dcgm_engine.UNIT, note=note, local=True))
        yield StringCommand("systemctl restart", dcgm_engine.UNIT, *_settled(settle_s))


def _installed_state(
    versions: Mapping[str, str], manager: PackageManager, contents: Mapping[str, str]
) -> tuple[Mapping[str, str], bool]:
    """Versions of the packages that are installed, and whether the engine runs."""
    _, fact, arguments = packages.question(host, versions, manager)
    foresee(
        [
            (host, fact, arguments),
            (host, Files, {"paths": list(contents)}),
            (host, Units, {"units": [dcgm_engine.UNIT]}),
        ]
    )
    unit = read(Units, units=[dcgm_engine.UNIT]).get(dcgm_engine.UNIT, _ABSENT)
    return read(fact, **arguments).versions, unit[0] == "active"


def _settled(seconds: int) -> list[str]:
    return [f"&& sleep {seconds}"] if seconds else []


@operation()
def checked(program: str, contents: Mapping[str, str]) -> Commands:
    """Ensure that timers ask the host engine for health and for a diagnosis.

    + program: text of what they call; contents: path -> text of its settings and units
    """
    timers = list(dcgm_engine.TIMERS)
    foresee(
        [
            (host, Files, {"paths": [dcgm_engine.PROGRAM]}),
            (host, Files, {"paths": list(contents)}),
            (host, Units, {"units": timers}),
        ]
    )
    running = read(Units, units=timers)
    yield from files.present._inner({dcgm_engine.PROGRAM: program}, mode="755")
    changed = yield from files.of_units(contents)
    yield from units.ensured(timers)
    if changed and running:
        yield StringCommand("systemctl restart", *timers)
    elif not running:
        # the first answers, for the proof at the end of the run, which says why one is missing
        services = [timer.replace(".timer", ".service") for timer in timers]
        failed = "echo 'DCGM has not answered to all that it was asked' >&2"
        yield StringCommand("{ systemctl start", *services, "||", f"{failed}; }}")


@operation()
def removed(metrics: str) -> Commands:
    """Ensure that no host engine runs that gpuboot has set up; its packages stay.

    One that a site runs itself has nothing of ours, and is left alone.

    + metrics: folder that node-exporter reads
    """
    paths, unit_names = list(dcgm_engine.traces(metrics)), [*dcgm_engine.TIMERS, dcgm_engine.UNIT]
    foresee([(host, Files, {"paths": paths}), (host, Units, {"units": unit_names})])
    if dcgm_engine.DROP_IN not in read(Files, paths=paths):
        host.noop("gpuboot has set up no host engine here")
        return
    changes.record(Effect(kind="restart", target=dcgm_engine.UNIT, note="it stops", local=True))
    present_units = [unit for unit in unit_names if unit in read(Units, units=unit_names)]
    if present_units:
        yield StringCommand("systemctl disable --now", *present_units)
    yield from files.present._inner({}, absent=paths)
    yield StringCommand("systemctl daemon-reload")
