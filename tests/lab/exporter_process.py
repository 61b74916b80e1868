"""The exporter's stand-in, run as a process over the simulated GPUs of a machine in a folder."""

from __future__ import annotations

import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.lab.gpusim_machine import Machine

Series = dict[str, list[tuple[dict[str, str], float]]]
_SERIES = re.compile(r"(\w+)\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass
class Exporter:
    """A running exporter that samples five times a second."""

    process: subprocess.Popen[str]
    address: str

    def scrape(self) -> Series:
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        series: Series = {}
        for name, labels, value in _SERIES.findall(text):
            series.setdefault(name, []).append((dict(_LABEL.findall(labels)), float(value)))
        return series

    def gpu(self, name: str, index: int = 0, **labels: str) -> float | None:
        """The value of a GPU's one series with these labels; None when there is none."""
        expected = {"gpu": str(index), **labels}.items()
        values = [value for has, value in self.scrape().get(name, []) if expected <= has.items()]
        assert len(values) <= 1, (name, values)
        return values[0] if values else None

    def wait(self, check: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not check():
            assert time.monotonic() < deadline
            time.sleep(0.1)


def start(program: Path, machine: Machine, *arguments: str, csv: str) -> Exporter:
    path = machine.root / "counters.csv"
    path.write_text(csv)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen(
        [program, "-f", path, "-a", address, "-c", "200", *arguments],
        env=machine.env(),
        stderr=subprocess.PIPE,
        text=True,
    )
    exporter = Exporter(process, address)
    host, port = address.split(":")
    for _ in range(100):
        with socket.socket() as probe:
            if process.poll() is not None or probe.connect_ex((host, int(port))) == 0:
                break
        time.sleep(0.05)
    return exporter
