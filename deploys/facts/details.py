"""What only a plan shows: contents of what differs. Nothing that is decided depends on them."""

from __future__ import annotations

import json
import shlex
from base64 import b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from gzip import decompress
from typing import Any

from typing_extensions import override

from deploys.facts.framed import Framed
from deploys.lib.kubectl import ADMIN_CONF
from gpuboot.cluster import gpu_pods
from gpuboot.hosts.fact_output import Fields
from gpuboot.plan.model import HIDDEN

_LARGEST = 262144  # bytes of a file that are read


class FileTexts(Framed[dict[str, str]]):
    """Texts of those of some files that exist; not for files that hold secrets."""

    of_plan = True

    default = dict

    @override
    def command(self, paths: Iterable[str]) -> str:
        names = " ".join(shlex.quote(path) for path in paths)
        return (
            f'for f in {names}; do if test -f "$f"; then '
            f'echo "$f $(head -c {_LARGEST} "$f" | base64 -w 0)"; fi; done'
        )

    @override
    def process(self, output: list[str]) -> dict[str, str]:
        texts = {}
        for line in output:
            path, _, text = line.rpartition(" ")
            texts[path] = b64decode(text).decode(errors="replace")
        return texts


class LiveObjects(Framed[list[dict[str, Any]]]):
    """Objects of the cluster as they are now; those that do not exist are missing.

    Nothing as well where the API server does not answer: they are shown, not relied on.
    """

    of_plan = True

    default = list

    @override
    def command(self, references: Sequence[tuple[str, str, str, str]]) -> str:
        """`references`: API version, kind, namespace ("" for none) and name of each."""
        items = [
            {
                "apiVersion": version,
                "kind": kind,
                "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
            }
            for version, kind, namespace, name in references
            if kind != "Secret"
        ]
        manifest = shlex.quote(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return (
            f"if [ -r {ADMIN_CONF} ] && command -v kubectl >/dev/null; then printf %s {manifest} | "
            f"kubectl --kubeconfig {ADMIN_CONF} get -f - --ignore-not-found --request-timeout=20s "
            "-o json 2>/dev/null | base64 -w 0; echo; fi"
        )

    @override
    def process(self, output: list[str]) -> list[dict[str, Any]]:
        text = b64decode("".join(output)).decode()
        document = json.loads(text) if text.strip() else {}
        items = document.get("items", [document] if document else [])
        return [item for item in items if item.get("kind") != "Secret"]


class GpuPods(Framed[tuple[str, ...] | None]):
    """Pods of a node that hold GPUs, as namespace/name; None: no answer.

    Read it on the leader.
    """

    of_cluster = True

    @staticmethod
    @override
    def default() -> tuple[str, ...] | None:
        return None

    @override
    def command(self, node: str) -> str:
        return (
            f"if [ -r {ADMIN_CONF} ] && command -v kubectl >/dev/null; then "
            f"kubectl --kubeconfig {ADMIN_CONF} get pods -A --request-timeout=20s "
            f"--field-selector spec.nodeName={shlex.quote(node)} "
            "-o json 2>/dev/null | base64 -w 0; echo; fi"
        )

    @override
    def process(self, output: list[str]) -> tuple[str, ...] | None:
        text = b64decode("".join(output)).decode()
        return tuple(gpu_pods.holding(json.loads(text)["items"])) if text.strip() else None


class HiddenInput(list[str]):
    """Standard input of a fact. With -v pyinfra logs the arguments of facts, this one as well."""

    @override
    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__


@dataclass(frozen=True)
class Manifests:
    """What a release has deployed and what it would deploy, as YAML; Secrets are left out.

    + error: why that cannot be rendered; "" when it can, or when the chart is not on the host
    """

    old: str = ""
    new: str = ""
    error: str = ""


# drops the documents of a YAML stream that are Secrets
_NO_SECRETS = (
    'awk \'function flush() { if (text != "" && !secret) printf "%s", text; '
    'text = ""; secret = 0 } /^---/ { flush() } /^kind: *"?Secret"?/ { secret = 1 } '
    '{ text = text $0 "\\n" } END { flush() }\''
)


class HelmManifests(Framed[Manifests]):
    """A release's manifest and the one that other values would make of it. Values by `_stdin`,
    as `HiddenInput`.

    One that cannot be rendered is "": it is shown, not relied on.
    """

    of_plan = True

    default = Manifests

    @override
    def command(self, helm: str, release: str, namespace: str, archive: str) -> str:
        """`helm`: the command with its kubeconfig; `archive`: path of the chart."""
        name, space = shlex.quote(release), shlex.quote(namespace)
        pack = f"{_NO_SECRETS} | gzip -c | base64 -w 0"
        return (
            f"if test -f {shlex.quote(archive)}; then said=$(mktemp); "
            f'echo "old $({helm} get manifest {name} -n {space} 2>/dev/null | {pack})"; '
            f'echo "new $({helm} template {name} {shlex.quote(archive)} -n {space} --is-upgrade '
            f'--no-hooks --dry-run=server --values - 2>"$said" | {pack})"; '
            'echo "error $(tr "\\n" " " <"$said" | cut -c 1-400 | base64 -w 0)"; rm -f "$said"; fi'
        )

    @override
    def process(self, output: list[str]) -> Manifests:
        values = Fields(output, separator=" ", last=None)
        error = b64decode(values.first("error")).decode(errors="replace").strip()
        error = error[max(error.find("Error: "), 0) :]  # warnings come before it
        old, new = (decompress(b64decode(values.first(key))).decode() for key in ("old", "new"))
        return Manifests(old, new, "" if new else error)
