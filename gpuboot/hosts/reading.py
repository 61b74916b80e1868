"""What pyinfra's process learned of hosts, as one document for the command that started it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from pydantic import TypeAdapter

from gpuboot.config.problems import Problem
from gpuboot.hosts.node_state import NodeState

# variable that names the file for the document
FINDINGS = "GPUBOOT_FINDINGS"


@dataclass(frozen=True, kw_only=True)
class HostReading:
    """What was read of one host.

    + state: the compound fact, read as root
    + peer: IP address that the SSH connection leads to; "" behind a jump host and without SSH
    + root_login: the login user is root, so commands need no sudo
    """

    state: NodeState
    peer: str = ""
    root_login: bool = False


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was read of all hosts.

    + hosts: inventory name -> what was read; only for `gpuboot init`
    + unreachable: inventory name -> what the connection ended with
    + problems: what keeps a run from starting
    + warnings: lines about what does not
    """

    hosts: Mapping[str, HostReading] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The document."""
        return _adapter().dump_json(self).decode()


def from_json(text: str) -> Reading:
    """The inverse of `Reading.to_json`. Raises ValueError when the text is no such document."""
    return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[Reading]:
    # made when it is needed: every run loads this module, and few need it
    return TypeAdapter(Reading)
