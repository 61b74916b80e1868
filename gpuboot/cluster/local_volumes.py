"""Volumes that are folders of a node: no snapshot of etcd has what is in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gpuboot.cluster.local_path import PROVISIONER_NAME
from gpuboot.hosts.fact_output import Fields

# how kubectl lists PersistentVolumes for `parse`: a line each
FORMAT = (
    "jsonpath={range .items[*]}{.spec.claimRef.namespace}/{.spec.claimRef.name}"
    '{"\\t"}{.spec.hostPath.path}{.spec.local.path}'
    '{"\\t"}{.spec.nodeAffinity.required.nodeSelectorTerms[*].matchExpressions[*].values[*]}'
    '{"\\t"}{.metadata.annotations.pv\\.kubernetes\\.io/provisioned-by}'
    '{"\\t"}{.metadata.deletionTimestamp}{"\\n"}{end}'
)
# clocks of nodes differ a little
_CLOCKS_S = 5


@dataclass(frozen=True)
class LocalVolume:
    """A volume that is a folder of one node.

    + claim: namespace/name of who asked for it
    + provisioner: that has made it; "" for none
    """

    claim: str
    path: str
    node: str
    provisioner: str = PROVISIONER_NAME

    @property
    def is_local_path(self) -> bool:
        """Whether local-path made it, and moves its folder aside when its claim is deleted."""
        return self.provisioner == PROVISIONER_NAME


@dataclass(frozen=True)
class Folder:
    """What a node has of a volume's folder.

    + state: `there`; `anew`: made after the backup; `aside`: moved to where deleted ones are;
      `gone`
    + aside: where that is; "": it is not there
    """

    state: str
    aside: str = ""


@dataclass
class Outlook:
    """What becomes of the claims of a backup when it is restored; lines of `claim (node: why)`."""

    back: list[str] = field(default_factory=list)
    without_data: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def parse(text: str) -> list[LocalVolume]:
    """The folders among the volumes that kubectl lists by `FORMAT`; not those that are deleted."""
    volumes = []
    for line in text.splitlines():
        claim, path, nodes, provisioner, deleted = line.split("\t")
        if path and len(nodes.split()) == 1 and claim != "/" and not deleted:
            volumes.append(LocalVolume(claim, path, nodes, provisioner))
    return sorted(volumes, key=lambda item: item.claim)


def parse_folders(lines: Iterable[str]) -> dict[str, Folder]:
    """What `templates/kubernetes/volume-folders.sh` printed, by path. Raises `FactOutputError`."""
    rows = Fields(lines).rows("folder")
    return {path: Folder(state, aside) for path, state, aside in rows}


def made_since(taken_at: float) -> int:
    """The time from which on a folder belongs to no volume of a backup. + taken_at: the backup's"""
    return int(taken_at) + _CLOCKS_S


def outlook(
    volumes: Sequence[LocalVolume],
    folders: Mapping[str, Mapping[str, Folder]],
    before: Mapping[str, Mapping[str, Folder]] | None = None,
) -> Outlook:
    """Sort claims by what a restore leaves of their data: there, lost or not known.

    + folders: what each node has, by its name; a node that did not answer is missing
    + before: likewise, before pods began to run; None: the restore is still to come
    """
    claims_outlook = Outlook()
    for item in volumes:
        place = f"{item.claim} ({item.node}: "
        now = folders.get(item.node, {}).get(item.path)
        previous = (before or {}).get(item.node, {}).get(item.path, now)
        if now is None or previous is None:
            claims_outlook.unknown.append(f"{place}the node does not answer)")
        elif reason := _loss_reason(item, now, previous, restored=before is not None):
            claims_outlook.without_data.append(f"{place}{reason})")
        elif "aside" in (now.state, previous.state) or (previous.aside and now.aside == ""):
            claims_outlook.back.append(f"{place}{item.path})")
    return claims_outlook


def _loss_reason(item: LocalVolume, now: Folder, previous: Folder, restored: bool) -> str:
    """Why a claim is without its data; "" where it has them, or gets them back."""
    states = {now.state, previous.state}
    if "gone" in states:
        return f"{item.path} is gone"
    if "anew" in states:
        aside = now.aside or previous.aside
        hint = f"; what it held before is in {aside}" if aside else ""
        return f"{item.path} was made after the backup{hint}"
    if restored and now.state == "aside":
        return f"its folder is still in {now.aside}"
    return ""


def question_lines(volumes: Sequence[LocalVolume] | None, claims_outlook: Outlook) -> list[str]:
    """What a person is told of volumes before a restore.

    + volumes: of the backup; None: it has no list of them
    """
    if volumes is None:
        return [
            "the backup has no list of volumes: claims that were deleted since may come back "
            "without their data; those are named at the end"
        ]
    lines = []
    if volumes:
        lines.append("volumes keep the data that they have now: a snapshot of etcd holds none")
    for title, claims in (
        (
            "these claims come back with their data, from the folders of deleted volumes",
            claims_outlook.back,
        ),
        ("these claims come back WITHOUT their data", claims_outlook.without_data),
        ("whether these claims have their data is not known", claims_outlook.unknown),
    ):
        if claims:
            lines.append("\n    ".join([f"{title}:", *claims]))
    return lines
