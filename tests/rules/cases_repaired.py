"""What ends a fault: evidence of its repair, or that the GPU has gone; not who watches it.

Energy counts since the driver was loaded (NVML, nvmlDeviceGetTotalEnergyConsumption), and memory
errors since the last reset.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.rules.cases_xid_fatal import xid, xid_alerts
from tests.rules.model import G0, G1, Case, Labels, dcgm, series, up, values

_CLOCK, _ENERGY = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_SBE = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
_HOST = {"job": "node-exporter", "instance": "10.0.0.1:9100"}
# the XID is counted at 20 minutes, and the exporter restarts at 40
_COUNTED = {xid(119): values((None, 20), (1, 20), (None, 1))}
_BACK = {dcgm(_CLOCK): values((1980, 40), (None, 1), (1980, 80))}
_SEVEN_MINUTES = {
    dcgm(_CLOCK): values((1980, 40), (None, 7), (1980, 80)),
    dcgm(_CLOCK, G1): "1980x300",
}


def _rises(before: float, after: float, gap: float = 1) -> str:
    """A counter, in mJ by 100 W. + gap: minutes from 40 on in which the exporter shows nothing"""
    return values((before, 40, 6e6), (None, gap), (after, 80, 6e6))


def _booted(at_min: float, **labels: str) -> dict[str, str]:
    """The host's boot time by node-exporter: long ago, and from 45 minutes on another one."""
    name = series("node_boot_time_seconds", **_HOST, **labels)
    return {name: values((-86400, 44), (at_min * 60, 80))}


_UNAME = {series("node_uname_info", **_HOST, nodename="gpu1"): "1x300"}


def _case(
    description: str, samples: Mapping[str, str], resolved: bool, alert: str = "GPUXidFatal"
) -> Case:
    """+ resolved: whether it has ended a few minutes after the exporter's restart"""
    alerts = xid_alerts(119)
    fires: dict[float, list[dict[str, str]]] = (
        {39: alerts} if resolved else {39: alerts, 50: alerts, 100: alerts}
    )
    return Case(
        alert, description, samples, fires, (19, *((50, 100) if resolved else ())), restart=True
    )


_NO_REPAIR = [
    _case("the exporter restarts, and nothing was repaired", _COUNTED | _BACK, resolved=False),
    _case("the exporter restarts again and again",
          _COUNTED | {dcgm(_CLOCK): values((1980, 40), *[(None, 1), (1980, 9)] * 8)},
          resolved=False),
    _case("the exporter restarts, and the GPU's counters go on",
          _COUNTED | _BACK | {dcgm(_ENERGY): _rises(9e9, 9.2e9)}, resolved=False),
    _case("two exporters tell values of different moments",
          _COUNTED | _BACK | {dcgm(_ENERGY): _rises(9e9, 9.2e9 - 3e6, gap=0.5)}, resolved=False),
    _case("the host booted before the XID",
          _COUNTED | _BACK | _UNAME | _booted(-50), resolved=False),
    _case("another host booted",
          _COUNTED | _BACK | _booted(44)
          | {series("node_uname_info", **_HOST, nodename="gpu2"): "1x300"}, resolved=False),
    _case("the exporter's page is empty for twenty minutes, and it is up",
          _COUNTED | {up(): "1x300", dcgm(_CLOCK): values((1980, 30), (None, 20), (1980, 80))},
          resolved=False),
    _case("one GPU is left out for two minutes",
          _COUNTED | {dcgm(_CLOCK): values((1980, 40), (None, 2), (1980, 80)),
                      dcgm(_CLOCK, G1): "1980x300"}, resolved=False),
    # a GPU with many corrected errors (NVIDIA/DCGM issue 313)
    _case("DCGM loses a GPU's samples for seven minutes, and its energy counts on",
          _COUNTED | _SEVEN_MINUTES | {dcgm(_ENERGY): _rises(9e9, 9.3e9, gap=7)}, resolved=False),
]  # fmt: skip
_REPAIRED = [
    _case("a reset, or the driver is loaded again: energy counts anew",
          _COUNTED | _BACK | {dcgm(_ENERGY): _rises(9e9, 1e6)}, resolved=True),
    _case("the same with the exporter running on",
          {xid(119): values((None, 20), (1, 100)), dcgm(_CLOCK): "1980x300",
           dcgm(_ENERGY): values((9e9, 40, 6e6), (1e6, 80, 6e6))}, resolved=True),
    _case("it was away for seven minutes, and its energy counts anew",
          _COUNTED | _SEVEN_MINUTES | {dcgm(_ENERGY): _rises(9e9, 1e6, gap=7)}, resolved=True),
    _case("it was away for seven minutes, and has no energy counter", _COUNTED | _SEVEN_MINUTES,
          resolved=True),
    _case("corrected errors count anew", _COUNTED | _BACK | {dcgm(_SBE): _rises(5000, 0)},
          resolved=True),
    _case("the host has booted since", _COUNTED | _BACK | _UNAME | _booted(43), resolved=True),
    _case("the host has booted since: Docker hosts name their node",
          _COUNTED | _BACK | _booted(43, node="gpu1"), resolved=True),
]  # fmt: skip
_OLD = {"node": "old1", "UUID": "GPU-0", "gpu": "0"}


def _removed(until: float | None, of: Labels = _OLD, exporter: float = 40) -> dict[str, str]:
    """XID 79 at 20 minutes: the GPU has gone, and its node goes.

    + until: minute up to which the cluster has the node; exporter: up to which that answers
    """
    node = of["node"]
    info = {series("kube_node_info", node=node): values((1, until), (None, 1))} if until else {}
    return info | {
        dcgm("DCGM_EXP_XID_ERRORS_TOTAL", of, xid="79"): values(
            (None, 20), (1, exporter - 20), (None, 1)
        ),
        dcgm(_CLOCK, of): values((1980, 20), (None, 1)),
        up(node): values((1, exporter), (None, 1)),
        series("kube_node_info", node="gpu1"): "1x3000",
    }


def _old(minutes: tuple[float, ...], of: Labels = _OLD) -> dict[float, list[dict[str, str]]]:
    return {minute: [{**of, "xid": "79", "gpu_action": "reboot"}] for minute in minutes}


_DEPARTED = [
    Case("GPUXidFatal", "the server has left inventory and cluster", _removed(60),
         _old((21, 39, 59, 65)), (75, 120), restart=True),
    Case("GPUXidFatal", "the cluster still has the server, which left the inventory",
         _removed(400), _old((21, 39, 59, 75, 190)), restart=True),
    Case("GPUXidFatal", "the inventory still promises the server, which left the cluster",
         _removed(60, G0), _old((21, 39, 59, 75, 190), G0), restart=True),
    Case("GPUXidFatal", "kube-state-metrics restarts, and nobody knows of the server meanwhile",
         _removed(400)
         | {series("kube_node_info", node="old1"): values((1, 60), (None, 5), (1, 300))},
         _old((21, 39, 62, 75, 190)), restart=True),
    Case("GPUXidFatal", "the server has another name, and shows the GPU",
         _removed(400) | {dcgm(_CLOCK, {**_OLD, "node": "new1"}): values((None, 50), (1980, 300))},
         _old((21, 39, 49)), (52, 120), restart=True),
    Case("GPUXidRepeated", "the server has left inventory and cluster",
         {**_removed(120), dcgm("DCGM_EXP_XID_ERRORS_TOTAL", _OLD, xid="31"):
          values(*[(number, 10) for number in range(1, 8)], (None, 1)),
          dcgm(_CLOCK, _OLD): values((1980, 70), (None, 1)),
          up("old1"): values((1, 110), (None, 1))},
         {69: [_OLD], 115: [_OLD]}, (135, 170), restart=True),
]  # fmt: skip
CASES = [*_NO_REPAIR, *_REPAIRED, *_DEPARTED]
