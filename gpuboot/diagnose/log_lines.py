"""Lines of logs with the time at which they were written, and which of them tells why a program
ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

# a program that tries again says the same again by then; client-go waits at most 60 s between two
# attempts and 30 s for an answer (reflector.go: backoff of 30 s with jitter; DialTimeout)
PRESENT_S = 120.0
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)) ")
# of containers' files: stream and whether the line is complete; of the journal: host and program
_BEFORE = re.compile(r"(?:std(?:out|err) [FP] |\S+ [\w@.-]+(?:\[\d+\])?: )")
_BOOT = re.compile(r"\[\s*(\d+\.\d+)\]")
# how Kubernetes' programs, etcd and containerd say that they give up, and how that they complain
_LAST = (
    re.compile(
        r'^Error: |^error verifying|"command failed"|^panic: |^F\d{4} |"level":"fatal"|'
        r"level=fatal|^containerd: |failed to run Kubelet"
    ),
    re.compile(r'^E\d{4} |"level":"error"|level=error|^Error'),
)
# why, where the last line says only that something was not there in time
_REASON = re.compile(
    r"x509: |certificate|address already in use|no space left|permission denied|"
    r"no such file|connection refused|failed to (?:parse|load|verify)"
)
# lines that complain of nothing, and those of a program's help or of its stack
_INFO = re.compile(
    r'"level":"info"|^I\d{4} |level=(?:info|debug)|^\s*$|'
    # Kubernetes 1.36 calls it an error at each start where there is none
    r"The manifest file is empty, ignoring"
)
_WARNING = re.compile(r'"level":"warn"|^W\d{4} |level=warning')
_HELP = re.compile(r"^\s|^[A-Z][\w /-]* flags:$|^Usage:|^goroutine \d|^See '")


class Line(str):
    """A line of a log, without its time. + at: seconds since 1970; None where that is not known"""

    at: float | None

    def __new__(cls, text: str, at: float | None = None) -> Line:
        line = super().__new__(cls, text)
        line.at = at
        return line


def parse(text: str) -> Line:
    """A line as the kubelet, a container's file or `journalctl -o short-iso` has it."""
    if not (stamp := _STAMP.match(text)):
        return Line(text)
    message = text[stamp.end() :]
    before = _BEFORE.match(message)
    at = datetime.fromisoformat(stamp[1].replace(",", ".")).timestamp()
    return Line(message[before.end() :] if before else message, at)


def parse_kernel(text: str, booted: float) -> Line:
    """A line of the kernel log, as it is. + booted: when the machine did, seconds since 1970"""
    since = _BOOT.match(text)
    return Line(text, booted + float(since[1]) if since and booted else None)


def present(at: float | None, now: float, within_s: float = PRESENT_S) -> bool:
    """Whether what was written then still counts. What has no time counts."""
    return at is None or at > now - within_s


def last_words(lines: Iterable[str]) -> list[str]:
    """The last line by which a program says that it gives up, and the last one that says why."""
    program_lines = [line for line in lines if not _HELP.match(line) and not _INFO.search(line)]
    plain = [line for line in program_lines if not _WARNING.search(line)]
    last = next(
        (matches for kind in _LAST if (matches := list(filter(kind.search, program_lines)))), plain
    )[-1:]
    reason = (
        [] if any(map(_REASON.search, last)) else list(filter(_REASON.search, program_lines))[-1:]
    )
    return [*reason, *last] if reason != last else last
