"""Hosts as a person names them for SSH: `user@host:port`, or a name of ~/.ssh/config."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import paramiko

from gpuboot.config.inventory import is_address
from gpuboot.config.problems import Problem

USER_CONFIG = Path("~/.ssh/config")
_TARGET = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^]\s]+\]|[^\s:@]+)(?::(?P<port>\d+))?")
# the first words of what a connection ends with -> what to do about it
_REMEDIES = (
    ("Authentication error", "give the user and key that log in there (--user, --key, user@host)"),
    ("SSH host key error", "if it was reinstalled, forget its old key: ssh-keygen -R {host}"),
    ("Could not resolve", "correct the name, or add it to ~/.ssh/config"),
)
_REMEDY = "check address, port and firewall with `ssh {command}`, or leave it out and add it later"


@dataclass(frozen=True)
class Target:
    """Where to log in.

    + host: name, IP address, or alias of ssh_config; `@…` is a connector of pyinfra
    + user: "" for the one of ssh_config, else the person's own
    + port: None for the one of ssh_config, else 22
    """

    host: str
    user: str = ""
    port: int | None = None

    @property
    def is_ssh(self) -> bool:
        """Whether it is reached by SSH."""
        return not self.host.startswith("@")

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return user + host + (f":{self.port}" if self.port else "")


def parse(text: str, user: str = "", port: int | None = None) -> Target:
    """The target that a person wrote.

    + user, port: where the text names none

    Raises ValueError with what is wrong.
    """
    if text.startswith("@"):
        return Target(text)
    if is_address(text):
        return Target(text, user, port)
    match = _TARGET.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no host: write user@host:port, host, or user@[IPv6]:port")
    if match["port"]:
        port = int(match["port"])
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"{text!r} has a port that does not exist: {port}")
    return Target(match["host"].strip("[]"), match["user"] or user, port)


def parse_all(
    texts: Iterable[str], user: str = "", port: int | None = None
) -> tuple[list[Target], list[Problem]]:
    """The targets of several texts, and a problem for each that is none or is given twice."""
    targets: list[Target] = []
    problems: list[Problem] = []
    for text in texts:
        try:
            target = parse(text, user, port)
        except ValueError as error:
            problems.append(Problem(text, str(error), "correct it"))
            continue
        if (target.host, target.port) in {
            (known_target.host, known_target.port) for known_target in targets
        }:
            problems.append(Problem(text, "is given twice", "name each host once"))
        targets.append(target)
    return targets, problems


def aliases(config: Path = USER_CONFIG) -> list[str]:
    """Hosts that an ssh_config file names, without patterns; none when it cannot be read."""
    path = config.expanduser()
    try:
        names = paramiko.SSHConfig.from_path(str(path)).get_hostnames()
    except (OSError, paramiko.SSHException):
        return []
    return sorted(name for name in names if not set(name) & set("*?!"))


def unreachable(target: Target, cause: str) -> Problem:
    """The problem of a host that cannot be connected to. + cause: what the connection ended with"""
    remedy = next((text for start, text in _REMEDIES if cause.startswith(start)), _REMEDY)
    port = f"-p {target.port} " if target.port else ""
    command = f"{port}{target.user}@{target.host}" if target.user else f"{port}{target.host}"
    # as known_hosts has it
    host = target.host if target.port in (None, 22) else f"'[{target.host}]:{target.port}'"
    return Problem(
        str(target),
        f"cannot be reached: {cause}",
        remedy.format(host=host, command=command),
    )
