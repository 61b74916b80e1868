"""The controller's network: a namespace whose only link to the machines has a delay and losses.

The mirror is the machines' neighbour, as a site's own mirror is: no delay lies between them.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import machines
from lab.build.store import digest
from lab.host import run
from lab.state import Lab, LabError, Machine, cache_dir

SOURCE = Path(__file__).with_name("relay.c")
_NETNS = Path("/run/netns")
_OWN_MS = 0.15  # what a round trip takes without any delay: two devices, a bridge, a process


@dataclass(frozen=True)
class Condition:
    """How far away the controller is.

    + rtt_ms: of a round trip, half of it in each direction
    + loss_percent: of the frames, in each direction
    """

    name: str
    rtt_ms: float
    loss_percent: float = 0.0

    @property
    def title(self) -> str:
        """The title for people: `20 ms`, `20 ms, 1 % loss`."""
        loss = f", {self.loss_percent:g} % loss" if self.loss_percent else ""
        return f"{self.rtt_ms:g} ms{loss}"


CONDITIONS = {
    condition.name: condition
    for condition in (
        Condition("0.2ms", 0.2),
        Condition("20ms", 20),
        Condition("80ms", 80),
        Condition("20ms-loss", 20, 1),
    )
}


@dataclass(frozen=True)
class Pinged:
    """What ping said of a link: milliseconds, and percent of the echoes that were lost."""

    least_ms: float
    mean_ms: float
    most_ms: float
    lost_percent: float


@dataclass(frozen=True)
class Traffic:
    """Bytes of Ethernet frames that the controller sent and received."""

    sent: int
    received: int

    def since(self, before: Traffic) -> Traffic:
        """What came on top of an earlier count."""
        return Traffic(self.sent - before.sent, self.received - before.received)


@dataclass(frozen=True)
class Controller:
    """The network namespace that sides run in; its address is the last one free below machines."""

    namespace: str
    device: str
    address: str

    def prefix(self) -> list[str]:
        """What to put before a command that is to run there."""
        return ["nsenter", f"--net={_NETNS / self.namespace}", "--"]

    def traffic(self) -> Traffic:
        """The link's counters."""
        output = run(["ip", "-n", self.namespace, "-s", "-j", "link", "show", "dev", self.device])
        return parse_traffic(output)


def parse_traffic(output: str) -> Traffic:
    """Counters from `ip -s -j link show dev DEVICE`."""
    (device,) = json.loads(output)
    counters = device["stats64"]
    return Traffic(counters["tx"]["bytes"], counters["rx"]["bytes"])


def parse_ping(output: str) -> Pinged:
    """The summary of `ping -q`. Raises `LabError` when no echo came back."""
    loss = re.search(r"([\d.]+)% packet loss", output)
    times = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)", output)
    if not loss or not times:
        raise LabError(f"ping had no answer: {output.strip()}")
    minimum, mean, maximum = map(float, times.groups())
    return Pinged(minimum, mean, maximum, float(loss[1]))


def ping(lab: Lab, machine: Machine, controller: Controller, count: int = 20) -> Pinged:
    """Measure the link, from the machine's end. Raises `LabError` when no echo comes back."""
    command = f"ping -q -n -c {count} -i 0.05 -W 2 {controller.address}"
    return parse_ping(machines.ssh(lab, machine, command, check=False))


@contextlib.contextmanager
def controller(lab: Lab, condition: Condition) -> Iterator[Controller]:
    """The controller's namespace under a condition, for as long as the `with` lasts."""
    namespace, near, far = f"gbctl{lab.index}", f"gbrelay{lab.index}", "ctl0"
    _remove(namespace)
    run(["ip", "netns", "add", namespace])
    delay_us = round(max(0, condition.rtt_ms - _OWN_MS) * 500)
    loss_ppm = round(condition.loss_percent * 10_000)
    arguments = [near, _NETNS / namespace, far, delay_us, loss_ppm, lab.index + 1]
    command = [_program(), *map(str, arguments)]
    relay = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if relay.stdout is None or relay.stdout.readline() != "ready\n":
            relay.kill()
            raise LabError(f"the link does not start: {relay.communicate()[1].strip()}")
        link = Controller(namespace, far, lab.host_address.removesuffix(".1") + ".9")
        _configure(lab, link, near)
        yield link
    finally:
        relay.kill()
        relay.wait()
        _remove(namespace)


def _configure(lab: Lab, link: Controller, near: str) -> None:
    queue = ["txqueuelen", "20000"]  # of the kernel's side: the relay alone decides what is lost
    run(["ip", "link", "set", "dev", near, *queue, "master", lab.bridge, "up"])
    inside = ["ip", "-n", link.namespace]
    run([*inside, "link", "set", "dev", "lo", "up"])
    run([*inside, "address", "add", f"{link.address}/24", "dev", link.device])
    # always the same, so that no machine remembers another one for this address
    hardware = "02:67:" + ":".join(f"{int(octet):02x}" for octet in link.address.split("."))
    run([*inside, "link", "set", "dev", link.device, "address", hardware, *queue, "up"])


def _remove(namespace: str) -> None:
    if (_NETNS / namespace).exists():
        run(["ip", "netns", "delete", namespace])


def _program() -> str:
    """relay.c, compiled into the cache."""
    target = cache_dir() / "bench" / f"relay-{digest(SOURCE)}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(part), str(SOURCE)])
        part.rename(target)
    return str(target)
