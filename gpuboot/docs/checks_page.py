"""docs/checks.md from the table of links."""

from __future__ import annotations

from collections.abc import Iterable

from gpuboot.verify.checks.links import TABLE
from gpuboot.verify.checks.one_file import Link

_INTRO = """# The links of the proof chain

What `gpuboot verify` asks of every GPU and of the cluster, made by `gpuboot docs checks` from the
table in `gpuboot/verify/checks/links.toml` and the files of `gpuboot/verify/checks/of_hosts/` and
`gpuboot/verify/checks/of_cluster/`. Each link is compared with the one below it, so of several
broken links of a GPU the lowest is the cause. Every failure carries its own remedy; here is how
that of the commonest begins. Verdicts, statuses and files: [reports.md](reports.md).
"""
_GPU = """
## Of each GPU

From the bottom to the top. With MIG, {card}
are about the card, and the others about each of its MIG devices.

"""
_DEEP = """
## Of each GPU, at the level deep

Besides, of nodes that no pod uses: [deep.md](deep.md).

"""
_CLUSTER = """
## Of the cluster

On Docker hosts: of the monitoring host.

"""
_HEAD = """| Link | Passes when | Facts come from | Fails when | Remedy | Docker hosts |
|---|---|---|---|---|---|
"""


def checks_markdown() -> str:
    """The content of docs/checks.md."""
    gpu = [link for link in TABLE if link.subject in ("card", "device")]
    deep = [link for link in TABLE if link.subject == "deep"]
    cluster = [link for link in TABLE if link.subject == "cluster"]
    *names, last = [f"`{link.name}`" for link in gpu if link.subject == "card"]
    about_gpus = _GPU.format(card=f"{', '.join(names)} and {last}")
    parts = [(about_gpus, gpu), (_DEEP, deep), (_CLUSTER, cluster)]
    return "".join([_INTRO, *(text for head, of in parts for text in [head, _HEAD, *_rows(of)])])


def _rows(links: Iterable[Link]) -> Iterable[str]:
    for link in links:
        docker = "yes" if link.docker else "no"
        cells = (f"`{link.name}`", link.passes, link.facts, link.fails, f"{link.remedy} …", docker)
        yield f"| {' | '.join(cells)} |\n"
