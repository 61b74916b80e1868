"""What keeps an API server from running, and whether waiting longer can help."""

import re
from collections.abc import Iterable

from gpuboot.cluster.stuck import CERTAIN_S, UNCERTAIN_S, WHILE_OTHERS_START_S, Stuck

# of a program that has ended: what no other one can change
_HAS_ENDED = "it has ended"
_UNITS = ("kubelet", "containerd")
_PERMANENT_ERROR = re.compile(
    r"unknown flag|invalid|no such file|permission denied|address already in use"
)


def of_control_plane(missing_parts: Iterable[tuple[str, str]], host: str) -> tuple[Stuck, ...]:
    """What keeps an API server from running. + missing_parts: part and reason, as its host tells

    A program that ends may be waiting for another: it is started again for some time.
    """
    return tuple(
        Stuck(
            f"{part} on {host}",
            cause,
            _lasts_s(part, cause),
            _of_part(part, host, _HAS_ENDED in cause),
        )
        for part, cause in missing_parts
    )


def _lasts_s(part: str, cause: str) -> float:
    if part in _UNITS:  # systemd may be starting it
        return UNCERTAIN_S
    may_recover = _HAS_ENDED in cause and not _PERMANENT_ERROR.search(cause)
    return WHILE_OTHERS_START_S if may_recover else CERTAIN_S


def _of_part(part: str, host: str, has_ended: bool) -> str:
    if has_ended:
        return f"correct what it says in /etc/kubernetes/manifests/{part}.yaml on {host}"
    if part in _UNITS:
        return f"see `journalctl -u {part}` on {host}; to start it: `systemctl start {part}`"
    phase = "etcd local" if part == "etcd" else "control-plane apiserver"
    return (
        f"put the file back, or have kubeadm write it on {host}: "
        f"`kubeadm init phase {phase} --config /etc/gpuboot/kubeadm.yaml`"
    )
