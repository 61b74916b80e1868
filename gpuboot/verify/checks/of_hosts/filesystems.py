"""The link `filesystems`: what containers need can be written, and has room.

A pod on a full or read-only disk does not start, or starts and loses what it writes; the kubelet
tells of a lack of room only where it looks, and late.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gpuboot.verify.checks.one_file import CheckVerdict, CommandOutput, HostCheck, Link

_FOLDERS = ("/", "/var/lib/kubelet", "/var/lib/containerd", "/var/lib/docker", "/var/log")
# path, size and room in KiB, inodes and free inodes ("-": it has none), options of the mount
_LINE = re.compile(r"(/\S*) (\d+) (\d+) (\d+|-) (\d+|-) (\S+)")
_MIN_FREE = 0.01  # of the size
_ENOUGH_KIB = 1 << 20  # on a large disk one per cent is much
_FULL = (
    "look at the disk, and make room: `du -xh --max-depth=2 /var | sort -h | tail`, `crictl rmi "
    "--prune`, `journalctl --vacuum-size=500M`"
)
_READ_ONLY = (
    "look at the disk: the kernel made it read-only (`journalctl -k -g "
    "'remount|I/O error'`, `smartctl -a`); repair or replace it, then reboot"
)
_COMMAND = rf"""for folder in {" ".join(_FOLDERS)}; do
  [ -d "$folder" ] || continue
  room=$(df -Pk "$folder" | awk 'NR == 2 {{ print $2, $4 }}')
  inodes=$(df -Pi "$folder" | awk 'NR == 2 {{ print $2, $4 }}')
  printf '%s %s %s %s\n' "$folder" "$room" "$inodes" "$(findmnt -nro OPTIONS -T "$folder")"
done"""


def _evaluate(gpus: Mapping[str, str], output: CommandOutput) -> list[CheckVerdict]:
    lines = output.text.strip().splitlines()
    matches = [_LINE.fullmatch(line.strip()) for line in lines]
    if broken := [line for line, match in zip(lines, matches, strict=True) if match is None]:
        return [_unknown(f"it printed {broken[0][:80]!r}")]
    if not matches:
        return [_unknown("it printed nothing")]
    problems = [problem for match in matches if match for problem in _problems(*match.groups())]
    if not problems:
        folders = ", ".join(match[1] for match in matches if match)
        return [CheckVerdict(status="pass", detail=f"can be written and have room: {folders}")]
    read_only = any("read-only" in problem for problem in problems)
    remedy = _READ_ONLY if read_only else _FULL
    return [CheckVerdict(status="fail", detail="; ".join(dict.fromkeys(problems)), remedy=remedy)]


def _unknown(reason: str) -> CheckVerdict:
    return CheckVerdict(
        status="unknown", detail=reason, remedy="see `df -h`, `df -i` and `findmnt` there"
    )


def _problems(
    folder: str, size: str, free: str, inodes: str, inodes_free: str, options: str
) -> Iterator[str]:
    if "ro" in options.split(","):
        yield f"{folder} is read-only"
    if int(free) < min(int(size) * _MIN_FREE, _ENOUGH_KIB):
        yield f"{folder} is full: {int(free) // 1024} of {int(size) // 1024} MiB are free"
    if "-" not in (inodes, inodes_free) and int(inodes_free) < int(inodes) * _MIN_FREE:
        yield f"{folder} has no room for files: {inodes_free} of {inodes} inodes are free"


CHECK = HostCheck(
    link=Link(
        name="filesystems",
        passes="what containers need can be written, and has room",
        facts=f"`df` and `findmnt` of {', '.join(_FOLDERS)}",
        fails="one of them is read-only, or has less than 1 % and 1 GiB of room, or of its inodes",
        remedy="look at the disk",
        subject="card",
        docker=True,
    ),
    behind="runtime",
    command=_COMMAND,
    evaluate=_evaluate,
)
