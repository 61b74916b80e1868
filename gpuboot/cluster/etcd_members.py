"""Members of etcd: which must go before a control plane joins, and whether one may."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gpuboot.hosts.fact_output import FactOutputError


@dataclass(frozen=True)
class Member:
    """A member of etcd. + id: as etcdctl takes it; name: its node's, "" if it never started"""

    id: str
    name: str
    urls: tuple[str, ...]
    healthy: bool

    def is_of(self, node: str, address: str) -> bool:
        """Whether it is the member of a node, which `address` ("": not known) tells as well."""
        hosts = {url.partition("://")[2].rpartition(":")[0].strip("[]") for url in self.urls}
        return self.name == node or bool(address and address in hosts)


def parse(members: str, health: str) -> list[Member]:
    """What `etcdctl member list` and `endpoint health --cluster` say, each with `-w json`.

    Raises `FactOutputError` for anything else.
    """
    try:
        well = {item["endpoint"] for item in json.loads(health) if item["health"]}
        return [
            Member(
                f"{int(item['ID']):x}",
                item.get("name", ""),
                tuple(item["peerURLs"]),
                any(url in well for url in item.get("clientURLs", ())),
            )
            for item in json.loads(members)["members"]
        ]
    except (ValueError, LookupError, TypeError) as error:
        raise FactOutputError(f"etcdctl's answer cannot be read: {error}") from error


def too_few(members: Sequence[Member], leaving: Collection[Member]) -> str:
    """Why etcd would lose its majority without some members; "" when it would not."""
    remaining = [member for member in members if member not in leaving]
    well = [member for member in remaining if member.healthy]
    needed = len(remaining) // 2 + 1
    if len(well) >= needed:
        return ""
    unhealthy_names = ", ".join(
        member.name or member.id for member in remaining if not member.healthy
    )
    return (
        f"etcd would lose its majority: of the {len(remaining)} members that would be left, "
        f"{len(well)} answer ({unhealthy_names or 'none'} "
        f"{'does' if unhealthy_names else 'is left'} not), and {needed} must"
    )


def join_refused(members: Sequence[Member], leaving: Collection[Member]) -> tuple[str, str] | None:
    """Cause and remedy when no control plane may join now; None when one may.

    + leaving: members of the machine that joins, which are removed before

    kubeadm adds no member where another one does not answer.
    """
    if shortage := too_few(members, leaving):
        return shortage, "bring back those that do not answer, or restore etcd from a snapshot"
    unhealthy = [member for member in members if member not in leaving and not member.healthy]
    if not unhealthy:
        return None
    name = unhealthy[0].name or unhealthy[0].id
    return (
        f"etcd's member of {name} does not answer, so that no other control plane can join",
        f"bring {name} back; or, if it is gone for good, remove it: pyinfra INVENTORY "
        f"deploys/remove.py --data gpuboot_remove={name}; then run again",
    )
