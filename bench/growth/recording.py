"""What two light machines, the control plane and a worker, answer to a run with nothing to do.

It is recorded once, and told again for any number of hosts: each has a name, an address and a
machine ID of its own in it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NOW = "1111111111.111111111"  # for the host's clock; see forced.sh
_MARK = "##gpuboot##"


@dataclass(frozen=True)
class Host:
    """+ address: in the cluster; server: where its SSH server listens"""

    name: str
    address: str
    server: str


@dataclass(frozen=True)
class Recording:
    """Answers by the SHA-256 of the command that they answer: exit code and standard output."""

    leader: Host
    worker: Host
    answers: Mapping[str, Mapping[str, tuple[str, str]]]  # by the host's name


def hosts(recorded: Recording, count: int) -> list[Host]:
    """The leader as it was recorded, and workers beside it."""
    workers = (
        Host(f"worker{number}", f"10.78.{number >> 8}.{number & 255}",
             f"127.78.{number >> 8}.{number & 255}")
        for number in range(1, count)
    )  # fmt: skip
    return [recorded.leader, *workers]


def read(folder: Path, leader: Host, worker: Host) -> Recording:
    """What forced.sh recorded in a folder."""
    answers = {
        host.name: {
            path.stem: (path.read_text(), path.with_suffix(".stdout").read_text())
            for path in (folder / host.server).glob("*.code")
        }
        for host in (leader, worker)
    }
    return Recording(leader, worker, answers)


def write(recorded: Recording, hosts: Sequence[Host], folder: Path) -> None:
    """Write for forced.sh what each of the hosts answers."""
    for host in hosts:
        like = recorded.leader if host.name == recorded.leader.name else recorded.worker
        target = folder / host.server
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for digest, (code, text) in recorded.answers[like.name].items():
            (target / f"{digest}.code").write_text(code)
            (target / f"{digest}.stdout").write_text(spoken(text, like, host))


def spoken(text: str, like: Host, host: Host) -> str:
    """The recorded answer of one host as another's would be.

    + like: who answered; host: who is to answer
    """
    return "\n".join(_framed_anew([_adapted_line(line, like, host) for line in text.split("\n")]))


def _adapted_line(line: str, like: Host, host: Host) -> str:
    key, tab, _ = line.partition("\t")
    key = key.removeprefix(f"{_MARK}=")
    if tab and key == "clock":
        return f"{_MARK}={key}\t{NOW}"
    if tab and key == "machine_id":
        return f"{_MARK}={key}\t{hashlib.md5(host.name.encode()).hexdigest()}"
    if tab and key == "boot_id":
        return f"{_MARK}={key}\t{uuid.uuid5(uuid.NAMESPACE_DNS, host.name)}"
    line = re.sub(rf"\b{re.escape(like.address)}(?![\d.])", host.address, line)
    return re.sub(rf"\b{re.escape(like.name)}\b", host.name, line)


def _framed_anew(lines: Sequence[str]) -> Iterator[str]:
    """The last line of each frame says how much the frame holds (gpuboot/hosts/fact_output.py)."""
    count = size = 0
    for line in lines:
        if line.startswith(f"{_MARK}="):
            count, size = count + 1, size + len(line.encode()) - len(_MARK) - 1
        if line.startswith(f"{_MARK}."):
            line, count, size = f"{_MARK}.{count} {size}", 0, 0
        yield line
