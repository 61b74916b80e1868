"""Static pods of a control plane: as kubeadm writes them, as their manifests are, as they run."""

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from gpuboot.cluster.manifests import YAML_LOADER
from gpuboot.hosts.fact_output import Fields
from gpuboot.plan import Decision

FOLDER = "/etc/kubernetes/manifests"
# kubeadm tells a member that joins who the others are; etcd reads it before it has data of its own
_ONCE = "--initial-cluster"
_RESTART = (
    "`crictl ps -a` on the node shows whether it starts; `systemctl restart kubelet` reads it again"
)


@dataclass(frozen=True)
class StaticPods:
    """What there is on one host.

    + error: why there is no answer; "" when there is one
    + expected, actual: file name -> its text, as kubeadm would write it and as it is
    + running: words of the command line of each process of the control plane
    """

    error: str = ""
    expected: Mapping[str, str] = field(default_factory=dict)
    actual: Mapping[str, str] = field(default_factory=dict)
    running: tuple[tuple[str, ...], ...] = ()


def parse(lines: Iterable[str]) -> StaticPods:
    """What `deploys/parts/kubeadm/static_pods_fact.sh` printed. Raises `FactOutputError`."""
    values = Fields(lines)
    texts = {
        key: {name: b64decode(text).decode() for name, text in values.pairs(key).items()}
        for key in ("expected", "actual")
    }
    commands = (b64decode(text).decode().splitlines() for text in values.all("running"))
    return StaticPods(
        error=values.first("error"), running=tuple(map(tuple, filter(None, commands))), **texts
    )


def changed(state: StaticPods) -> dict[str, str]:
    """Manifests that are not as kubeadm writes them, or gone -> the text that they have to have."""
    expected = {
        name: _with_own_members(text, state.actual.get(name, ""))
        for name, text in state.expected.items()
    }
    return {
        name: text
        for name, text in expected.items()
        if name not in state.actual or _read(text) != _read(state.actual[name])
    }


def overrides(state: StaticPods) -> list[Decision]:
    """What makes the kubelet run something else than these manifests say."""
    return [*_twins(state), *_running(state)]


def is_running(state: StaticPods) -> bool:
    """Whether a process with just its flags runs for each manifest."""
    running = {frozenset(words) for words in state.running}
    commands = [command_of(text) for name, text in state.actual.items() if name in state.expected]
    return all(frozenset(command) in running for command in commands)


def _with_own_members(text: str, actual: str) -> str:
    """etcd's manifest with the flags about members that the host's own has."""
    own_lines = [line for line in actual.splitlines() if _ONCE in line]
    if not own_lines:
        return text
    lines = text.splitlines()
    place = next((number for number, line in enumerate(lines) if _ONCE in line), len(lines))
    remaining = [line for line in lines if _ONCE not in line]
    return "\n".join([*remaining[:place], *own_lines, *remaining[place:]]) + "\n"


def _read(text: str) -> object:
    try:
        return yaml.load(text, Loader=YAML_LOADER)
    except yaml.YAMLError:
        return None


def _pod(text: str) -> str:
    document = _read(text)
    meta = document.get("metadata") if isinstance(document, dict) else None
    return str(meta.get("name", "")) if isinstance(meta, dict) else ""


def _twins(state: StaticPods) -> Iterator[Decision]:
    pods = {_pod(text): name for name, text in state.expected.items()}
    for name, text in state.actual.items():
        if name not in state.expected and (pod := _pod(text)) in pods:
            yield Decision(
                what=f"{FOLDER}/{name} is a second manifest of the pod {pod}",
                why=f"the kubelet reads every file there, and may run this one instead of "
                f"{pods[pod]}; move it to another folder",
            )
        elif name not in state.expected and pod:
            yield foreign_pod(name)


def foreign_pod(name: str) -> Decision:
    """What is said of a manifest that is not kubeadm's. + name: of its file"""
    return Decision(
        what=f"{FOLDER}/{name} is no manifest of kubeadm's, and the kubelet runs its pod",
        why="somebody's own: no API server was asked whether it may run, and none can end it; move "
        "it to another folder, or make its pod a DaemonSet",
    )


def _running(state: StaticPods) -> Iterator[Decision]:
    for name, text in state.actual.items():
        command = command_of(text) if name in state.expected else []
        processes = [words for words in state.running if command and words[0] == command[0]]
        if not processes or any(set(words) == set(command) for words in processes):
            continue
        closest = max(processes, key=lambda words: len({*words} & {*command}))
        extra, less = sorted({*closest} - {*command}), sorted({*command} - {*closest})
        yield Decision(
            what=f"{command[0]} does not run as {FOLDER}/{name} says: "
            + "; ".join(
                f"{word} {', '.join(flags)}"
                for word, flags in (("runs with", extra), ("without", less))
                if flags
            ),
            why=f"the kubelet has not started it again; {_RESTART}",
        )


def command_of(text: str) -> list[str]:
    """The command line of a manifest's container; nothing where it cannot be read."""
    document = _read(text)
    try:
        [container] = document["spec"]["containers"]  # type: ignore[index]
        return [*container["command"], *container.get("args", ())]
    except (KeyError, TypeError, ValueError):
        return []
