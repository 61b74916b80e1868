"""A population's machine: commands and files that answer the product's own facts as it would."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploys.parts.driver.nvidia_fact import SCRIPT
from gpuboot.config.inventory import Node
from gpuboot.hosts import node_state
from gpuboot.verify import gpu_state
from gpuboot.verify.devices import Host
from tests.populations.model import Card, Population

ADDRESS = "10.77.0.21"
_NEEDS_RESET = "[GPU requires reset]"
_KNOWS_FABRIC = 525  # driver branch from which on nvidia-smi can be asked for the fabric
_CRI = (
    '{"config":{"containerd":{"defaultRuntimeName":"nvidia"}},'
    '"runtimeHandlers":[{"name":"runc"},{"name":"nvidia"}]}'
)


@dataclass(frozen=True)
class Machine:
    """The machine of a population.

    + lost_cards: indices of GPUs that the driver sees and that do not answer it any more
    + resets: indices of GPUs that need a reset
    + missing_cards: indices of GPUs that left the bus
    + fabric: what fabric.state answers, where not as the population says
    + expected_gpus: GPUs by the inventory, where not as many as there are
    """

    of: Population
    lost_cards: frozenset[int] = frozenset()
    resets: frozenset[int] = frozenset()
    missing_cards: frozenset[int] = frozenset()
    fabric: str = ""
    expected_gpus: int | None = None

    @property
    def node(self) -> Node:
        """What the inventory says of it."""
        count = len(self.of.cards) if self.expected_gpus is None else self.expected_gpus
        return Node(self.of.node, self.of.node, ADDRESS, "worker", count, False)

    @property
    def cards(self) -> tuple[Card, ...]:
        """Those on the bus."""
        return tuple(card for card in self.of.cards if card.index not in self.missing_cards)

    @property
    def version(self) -> str:
        """First line of /proc/driver/nvidia/version."""
        built = "Release Build  (dvs-builder@U22)" if "Open" in self.of.flavour else ""
        return f"NVRM version: NVIDIA UNIX {self.of.flavour}  {self.of.driver}  {built}".rstrip()

    def host(self) -> Host:
        """What the product's facts make of it."""
        gpus = gpu_state.parse(self.nvidia_fact())
        state = node_state.parse(self.node_fact())
        return gpu_state.host(self.node, state, gpus, None)

    def node_fact(self) -> list[str]:
        """Lines of deploys/parts/node/fact.sh, as far as GPUs are concerned."""
        devices = [(card.slot, self.of.device, self.of.kind) for card in self.cards]
        devices += [
            (d.slot, d.device, d.kind) for d in self.of.other_devices if d.vendor == "0x10de"
        ]
        return [
            "uid\t0",
            f"hostname\t{self.of.node}",
            "os_id\tubuntu",
            "os_version\t24.04",
            *(f"pci\t{' '.join(device)}" for device in devices),
            *(f"nvlink_bridge\t{d.slot}" for d in self.of.other_devices if d.vendor == "0x15b3"),
            f"driver\t{self.version}",
            f"driver_module\t{self.of.driver}",
            "clock\t1795270540.5",
        ]

    def nvidia_fact(self) -> list[str]:
        """What deploys/parts/driver/nvidia_fact.sh itself prints there."""
        key = self.of.name, self.lost_cards, self.resets, self.missing_cards, self.fabric
        if key not in _FACT_CACHE:
            _FACT_CACHE[key] = self._run_fact()
        return _FACT_CACHE[key]

    def _run_fact(self) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            self._files(root)
            script = SCRIPT.replace("/proc/", f"{root}/proc/").replace("/sys/", f"{root}/sys/")
            result = subprocess.run(
                ["sh", "-c", script],
                env={"PATH": f"{root}/bin:{os.environ['PATH']}"},
                capture_output=True,
                text=True,
                check=True,
            )
        return result.stdout.splitlines()

    def smi(self) -> str:
        """Text of the stand-in for nvidia-smi."""
        return _SMI.format(
            fields="\n".join(self._cases()),
            buses=" ".join(card.bus for card in self.cards),
            lost=" ".join(card.bus for card in self.cards if card.index in self.lost_cards)
            or "none",
            listing=shlex.quote("\n".join(self.listing())),
            details=shlex.quote("\n".join(self.details())),
        )

    def listing(self) -> Iterator[str]:
        """`nvidia-smi -L`."""
        for card in self.cards:
            yield f"GPU {card.index}: {self.of.model} (UUID: {card.uuid})"
            for number, instance in enumerate(card.instances):
                name = f"MIG {instance.profile}"
                yield f"  {name:<15} Device {number:>2}: (UUID: {instance.uuid})"

    def details(self) -> Iterator[str]:
        """`nvidia-smi -q`, as far as anybody reads it."""
        for card in self.cards:
            yield f"GPU {card.bus}"
            yield f"    Product Name                                       : {self.of.model}"
            for number, instance in enumerate(card.instances):
                yield "    MIG Device"
                for key, value in (
                    ("Index", number),
                    ("GPU Instance ID", instance.gi),
                    ("Compute Instance ID", 0),
                ):
                    yield f"        {key:<47}: {value}"
            yield "    Fabric"
            yield f"        {'State':<47}: {self._fabric()}"

    def _fabric(self) -> str:
        return (self.fabric or self.of.fabric).strip("[]")

    def _answers(self, card: Card) -> dict[str, str]:
        values = self.of.metrics(card, None)
        power = values.get("DCGM_FI_DEV_POWER_USAGE")
        answers = {
            "memory.total": self.of.memory,
            "mig.mode.current": "Enabled" if card.instances else self.of.mig,
            "temperature.gpu": f"{values.get('DCGM_FI_DEV_GPU_TEMP', '[N/A]')}",
            "power.draw": "[N/A]" if power is None else f"{power:.2f}",
            "pstate": "P0",
            "driver_version": self.of.driver,
        }
        if int(self.of.driver.partition(".")[0]) >= _KNOWS_FABRIC:
            state = self.fabric or self.of.fabric
            status = "Success" if state == "Completed" else "[N/A]"
            answers |= {"fabric.state": state, "fabric.status": status}
        if card.index in self.resets:
            answers = dict.fromkeys(answers, _NEEDS_RESET)
        return answers | {
            "index": str(card.index),
            "uuid": card.uuid,
            "name": self.of.model,
            "pci.bus_id": card.bus,
        }

    def _cases(self) -> Iterator[str]:
        for card in self.cards:
            for key, value in self._answers(card).items():
                yield f"  {card.bus}={key}) printf '%s' {shlex.quote(value)} ;;"

    def _cdi(self) -> Iterator[str]:
        """CDI devices by index and UUID: of a GPU that is cut its MIG devices, and not itself."""
        for card in self.cards:
            for number, instance in enumerate(card.instances):
                yield from (f"{card.index}:{number}", instance.uuid)
            if not card.instances:
                yield from (str(card.index), card.uuid)
        yield "all"

    def _files(self, root: Path) -> None:
        driver = root / "proc/driver/nvidia"
        driver.mkdir(parents=True)
        (driver / "version").write_text(f"{self.version}\nGCC version:  gcc 13\n")
        for card in self.cards:
            folder = driver / "gpus" / card.slot
            folder.mkdir(parents=True)
            information = f"Model: \t\t {self.of.model}\nGPU UUID: \t {card.uuid}\n"
            (folder / "information").write_text(information)
            device = root / "sys/bus/pci/devices" / card.slot
            device.mkdir(parents=True)
            (device / "vendor").write_text("0x10de\n")
            (device / "class").write_text(f"{self.of.kind}\n")
        commands = root / "bin"
        commands.mkdir()
        device_list = "\n".join(f"nvidia.com/gpu={name}" for name in self._cdi())
        for name, text in (
            ("nvidia-smi", self.smi()),
            ("nvidia-ctk", f"printf '%s\\n' {shlex.quote(device_list)}"),
            ("crictl", f"printf '%s\\n' {shlex.quote(_CRI)}"),
        ):
            (commands / name).write_text(f"#!/bin/sh\n{text}\n")
            (commands / name).chmod(0o755)


_FACT_CACHE: dict[tuple[object, ...], list[str]] = {}
# What it does when a GPU is lost: https://docs.nvidia.com/deploy/nvidia-smi, exit code 15
_SMI = """
wanted= asked=
while [ $# -gt 0 ]; do
  case $1 in
    -i) wanted=$2; shift ;;
    --query-gpu=*) asked=${{1#*=}} ;;
    -L) printf '%s\\n' {listing}; exit ;;
    -q) printf '%s\\n' {details}; exit ;;
  esac
  shift
done
one() {{ case $1=$2 in
{fields}
  *) echo "Field \\"$2\\" is not a valid field to query."; exit 2 ;;
esac; }}
for bus in ${{wanted:-{buses}}}; do
  case " {lost} " in *" $bus "*)
    echo "Unable to determine the device handle for GPU$bus: GPU is lost.  Reboot the system" \\
      "to recover this GPU"
    exit 15 ;;
  esac
done
for bus in ${{wanted:-{buses}}}; do
  sep= IFS=,
  for name in $asked; do printf '%s' "$sep"; one "$bus" "$name"; sep=', '; done
  unset IFS
  echo
done
"""
