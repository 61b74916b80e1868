"""The program that divides GPUs of Docker hosts, with stand-ins of nvidia-smi and docker."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from deploys.parts.containerd.operations import CDI_SPEC
from gpuboot.docker import docker_mig

HEAD = '#!/bin/sh\necho "$(basename $0) $*" >>"$STATE/notes"\n'
# keeps for each GPU a file with its mode now, one with that after a reset, one with its instances
SMI = """
gpu='' all=$*
while [ $# -gt 0 ]; do
  case $1 in
    -i) gpu=$2; shift ;;
    -mig | -cgi) act=$1 given=$2; shift ;;
    --query-gpu=*) act=query ;;
    --query-compute-apps=*) act=apps ;;
    -L | -lgip | -dci | -dgi) act=$1 ;;
  esac
  shift
done
cd "$STATE"
refuse() { echo "$*: In use by another client"; exit 19; }
[ ! -e "refuse.$act" ] || refuse "Unable to $act"
case $act in
  query)
    for file in mode.*; do
      n=${file#mode.}
      case $gpu in '' | "$n") ;; *) continue ;; esac
      case $all in *index*) printf '%s, GPU-%s, ' "$n" "$n" ;; esac
      echo "$(cat "$file"), $(cat "pending.$n")"
    done ;;
  apps) cat apps ;;
  -lgip) cat "lists.$gpu" 2>/dev/null || { echo 'No MIG-supported devices found.'; exit 6; } ;;
  -L)
    for file in mode.*; do
      n=${file#mode.}
      echo "GPU $n: NVIDIA H100 80GB HBM3 (UUID: GPU-$n)"
      i=0
      for profile in $(cat "have.$n"); do
        printf '  MIG %-11s Device %2u: (UUID: MIG-%s-%s)\\n' "$profile" $i "$n" $i
        i=$((i + 1))
      done
    done ;;
  -dci) [ -s "have.$gpu" ] || { echo 'No compute instances found: Not Found'; exit 6; } ;;
  -dgi) [ -s "have.$gpu" ] || { echo 'No GPU instances found: Not Found'; exit 6; }
    : >"have.$gpu" ;;
  -mig)
    case $given in 1) mode=Enabled ;; *) mode=Disabled ;; esac
    echo $mode >"pending.$gpu"
    [ -e slow ] || echo $mode >"mode.$gpu" ;;
  -cgi) echo "$given" | tr ',' '\\n' >"have.$gpu" ;;
esac
[ ! -e warns ] || { echo 'WARNING: infoROM is corrupted at gpu 0000:10:00.0'; exit 14; }
"""
DOCKER = """
case $1 in
  ps) cut -d ' ' -f 2 "$STATE/containers" ;;
  inspect) for id; do :; done; grep " $id " "$STATE/containers" ;;
esac
"""
SYSTEMCTL = 'case $* in *is-active*) grep -qx "$3" "$STATE/active" ;; esac\n'
LAYOUT = "# comment\n0 3g.40gb 1g.10gb 1g.10gb\n1\n"


class Machine:
    """A Docker host with two GPUs that MIG could divide. dockerd and DCGM's engine run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in (
            ("nvidia-smi", SMI), ("docker", DOCKER), ("systemctl", SYSTEMCTL), ("nvidia-ctk", ""),
        ):  # fmt: skip
            (root / name).write_text(HEAD + text)
            (root / name).chmod(0o755)
        for gpu in range(2):
            self.provide({f"mode.{gpu}": "Disabled\n", f"pending.{gpu}": "Disabled\n"})
            self.provide({f"have.{gpu}": "", f"proc/driver/nvidia/gpus/{gpu}/information":
                       f"GPU UUID: \t GPU-{gpu}\nDevice Minor: \t {gpu}\n"})  # fmt: skip
        self.provide({"containers": "", "apps": "", "notes": ""})
        self.provide({"active": "docker.service\nnvidia-dcgm.service\n", "layout": LAYOUT})
        program = docker_mig.program().replace(CDI_SPEC, f"{root}/cdi.yaml")
        program = program.replace("proc=/proc", f"proc={root}/proc")
        self.program = re.sub(r"PATH=\S+", f"PATH={root}:/usr/bin:/bin", program, count=1)

    def provide(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def container(self, pid: int, name: str, device: str, project: str = "") -> None:
        """One that was given a device file."""
        with (self.root / "containers").open("a") as file:
            file.write(f"{pid} c0ffee{pid} /{name} {project}\n")
        self.provide(
            {f"proc/{pid}/root/dev/{device}": "", f"proc/{pid}/cgroup": f"0::/c0ffee{pid}\n"}
        )

    def run(self, action: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", self.program, "gpuboot-mig", action, f"{self.root}/layout"],
            env={**os.environ, "STATE": str(self.root)},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    @property
    def changes(self) -> list[str]:
        """The commands that change something."""
        looks = ("--query", "is-active", "-L", "-lgip", "docker ps", "docker inspect")
        notes = (self.root / "notes").read_text().splitlines()
        return [line for line in notes if not any(word in line for word in looks)]

    def have(self, gpu: int) -> list[str]:
        return (self.root / f"have.{gpu}").read_text().split()


def profile_list(*profiles: str) -> str:
    """Rows of `nvidia-smi mig -lgip`. + profiles: a name and how many of it there can be"""
    rows = (profile.split() for profile in profiles)
    return "".join(
        f"|   0  MIG {name:<18} 14     {total}/{total}"
        "        23.12      No     46     1     1   |\n"
        "|                                                               1     1     0   |\n"
        for name, total in rows
    )


SEVEN = ("1g.99gb 7", "1g.99gb+me 1", "1g.198gb 4", "2g.198gb 3", "3g.396gb 2", "7g.792gb 1")
FOUR = ("1g.24gb 4", "1g.24gb+me.all 1", "1g.24gb-me 4", "2g.48gb 2", "2g.48gb+gfx 2", "4g.96gb 1")


@pytest.mark.parametrize(
    ("layout", "lists", "expected"),
    [
        ("all-1g.99gb", SEVEN, ",".join(["1g.99gb"] * 7)),
        ("all-1g.99gb.me", SEVEN, "1g.99gb+me"),
        ("all-balanced", SEVEN, "3g.396gb,2g.198gb,1g.99gb,1g.99gb"),
        ("all-balanced", FOUR, "2g.48gb,1g.24gb,1g.24gb"),
        ("all-1g.24gb.me.all", FOUR, "1g.24gb+me.all"),
        ("all-1g.24gb-me", FOUR, ",".join(["1g.24gb-me"] * 4)),
    ],
)
def test_a_layout_of_a_model_that_its_driver_knows(
    machine: Machine, layout: str, lists: tuple[str, ...], expected: str
) -> None:
    machine.provide({"layout": f"# comment\n0 {layout}\n1\n", "lists.0": profile_list(*lists)})
    result = machine.run("apply")
    assert result.returncode == 0, result.stderr
    assert f"nvidia-smi mig -i 0 -cgi {expected} -C" in machine.changes
    assert machine.run("look").stdout == "end\tok\n"


@pytest.mark.parametrize("layout", ["all-1g.98gb", "all-balanced"])
def test_a_layout_that_the_driver_does_not_have(machine: Machine, layout: str) -> None:
    machine.provide({"layout": f"0 {layout}\n1\n"})
    result = machine.run("apply")
    assert result.returncode == 1
    assert f"the driver of GPU 0 has no MIG profile for {layout}" in result.stderr
    assert "nvidia-smi mig -i 0 -lgip" in result.stderr
    assert machine.changes == []
    assert "error\tthe driver of GPU 0 has no MIG profile" in machine.run("look").stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("warns", [False, True])
def test_a_layout_is_made_once(machine: Machine, warns: bool) -> None:
    if warns:  # nvidia-smi does what it is to do, and exits with 14
        machine.provide({"warns": ""})
    machine.provide({"cdi.yaml": ""})
    machine.container(7, "gpuboot-dcgm-exporter-1", "nvidia0", "gpuboot")
    machine.container(8, "gpuboot-prometheus-1", "null", "gpuboot")
    result = machine.run("apply")
    assert result.returncode == 0, result.stderr
    assert machine.changes == [
        "systemctl stop nvidia-dcgm.service",
        "docker stop -t 20 gpuboot-dcgm-exporter-1",
        "nvidia-smi -i 0 -mig 1",
        "nvidia-smi mig -i 0 -cgi 3g.40gb,1g.10gb,1g.10gb -C",
        f"nvidia-ctk cdi generate --output {machine.root}/cdi.yaml",
        "systemctl start nvidia-dcgm.service",
        "docker start gpuboot-dcgm-exporter-1",
    ]
    assert machine.run("look").stdout == "end\tok\n"
    machine.provide({"notes": ""})
    assert machine.run("apply").returncode == 0
    assert machine.changes == []


@pytest.mark.parametrize(
    ("have", "layout", "steps"),
    [
        ("1g.10gb", "0 3g.40gb\n", ["mig -i 0 -dci", "mig -i 0 -dgi", "mig -i 0 -cgi 3g.40gb -C"]),
        ("1g.10gb", "0\n", ["mig -i 0 -dci", "mig -i 0 -dgi", "-i 0 -mig 0"]),
        ("", "0 7g.80gb\n", ["mig -i 0 -dci", "mig -i 0 -dgi", "mig -i 0 -cgi 7g.80gb -C"]),
        ("1g.10gb 3g.40gb", "0 3g.40gb 1g.10gb\n", []),
    ],
)
def test_a_gpu_that_is_divided_already(
    machine: Machine, have: str, layout: str, steps: list[str]
) -> None:
    machine.provide({"mode.0": "Enabled\n", "have.0": have, "layout": layout, "active": ""})
    result = machine.run("apply")
    assert result.returncode == 0, result.stderr
    assert machine.changes == [f"nvidia-smi {step}" for step in steps]
    assert sorted(machine.have(0)) == sorted(layout.split()[1:])


@pytest.mark.parametrize(
    ("device", "apps", "message"),
    [
        ("nvidia0", "", "GPU 0: container train"),
        ("nvidia0", "GPU-0, 9, python\n", "GPU 0: process 9 (python) of container train"),
        ("nvidia1", "GPU-0, 55, python3\n", "GPU 0: process 55 (python3)"),
        ("nvidia1", "GPU-1, 9, python\n", ""),
        ("nvidia1", "GPU-0, 56, nv-hostengine\n", ""),
    ],
)
def test_what_uses_a_gpu_keeps_its_layout(
    machine: Machine, device: str, apps: str, message: str
) -> None:
    machine.container(9, "train", device)
    machine.provide({"apps": apps, "proc/56/cgroup": "0::/system.slice/nvidia-dcgm.service\n"})
    looked = [line for line in machine.run("look").stdout.splitlines() if "used" in line]
    assert looked == ([message.replace("GPU 0:", "used\t0")] if message else [])
    assert machine.changes == []
    result = machine.run("apply")
    if not message:
        assert result.returncode == 0, result.stderr
        return
    assert result.returncode == 1
    assert f"nothing was changed: {message}\n    remedy: stop that" in result.stderr
    assert machine.changes == []


def test_nobody_asks_a_dockerd_that_waits_for_this_program(machine: Machine) -> None:
    machine.provide({"active": ""})
    assert machine.run("apply").returncode == 0
    assert "docker" not in (machine.root / "notes").read_text().replace("docker.service", "")


def test_a_mode_that_takes_a_reset_is_told(machine: Machine) -> None:
    machine.provide({"slow": ""})
    result = machine.run("apply")
    assert result.returncode == 1
    assert "its MIG mode is Disabled, Enabled until it is reset" in result.stderr
    assert "systemctl start nvidia-dcgm.service" in machine.changes


def test_one_gpu_that_refuses_does_not_keep_the_others(machine: Machine) -> None:
    machine.provide({"mode.1": "Enabled\n", "have.1": "1g.10gb", "refuse.-cgi": ""})
    result = machine.run("apply")
    assert result.returncode == 1
    assert "GPU 0 is not divided: Unable to -cgi: In use by another client" in result.stderr
    assert machine.have(1) == []
    assert "systemctl start nvidia-dcgm.service" in machine.changes


def test_a_driver_that_does_not_answer_is_told(machine: Machine) -> None:
    machine.provide({"refuse.query": ""})
    looked = machine.run("look")
    assert (looked.returncode, looked.stdout) == (
        0, "error\tnvidia-smi: Unable to query: In use by another client\nend\tok\n",
    )  # fmt: skip
    result = machine.run("apply")
    assert result.returncode == 1
    assert "remedy" in result.stderr
