"""The objects that Helm and gpuboot keep in the cluster. On the leader."""

import json
import shlex
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from gzip import decompress
from typing import Any

from deploys.engine.framed import Framed
from deploys.parts.cluster import api_scripts as api
from deploys.parts.cluster.kubectl import ADMIN_CONF, apply_as
from gpuboot.cluster import kubeadm_objects, volumes
from gpuboot.cluster.kubeadm_objects import KubeadmObjects
from gpuboot.cluster.managed_objects import (
    PATHS,
    SECRETS,
    Key,
    ManagedObjects,
    key,
    parse_managed,
    parse_present,
    path,
)
from gpuboot.cluster.switched_off_parts import Contents, contents_paths, parse_contents
from gpuboot.cluster.volumes import Volumes, parse_volumes


class Managed(Framed[ManagedObjects]):
    """The objects of Helm releases and of gpuboot, by one command; digests of Secrets."""

    of_cluster = True
    parse = parse_managed

    @staticmethod
    def default() -> ManagedObjects:
        return ManagedObjects(error="there is no answer")

    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        return api.command("cluster/managed_objects.sh", kubeconfig, [SECRETS, *PATHS.values()])


class Applied(Framed[list[dict[str, Any]]]):
    """What the API server would make of objects that are applied; it keeps nothing of it.

    Objects as one document by `_stdin`, as `deploys.engine.framed.HiddenInput`. Nothing where it
    refuses one of them.
    """

    of_cluster = True
    default = list

    def command(self, manager: str) -> str:
        """`manager`: in whose name they are applied."""
        return (
            f"{apply_as(manager)} - --dry-run=server -o json 2>/dev/null | gzip -c | base64 -w 0; "
            "echo"
        )

    def process(self, output: list[str]) -> list[dict[str, Any]]:
        text = decompress(b64decode("".join(output))).decode()
        document = json.loads(text) if text.strip() else {}
        items: list[dict[str, Any]] = document.get("items", [document] if document else [])
        return items


class Stored(Framed[Volumes]):
    """All volumes and claims. Only what takes a part away asks for them: there may be many."""

    of_cluster = True
    default = Volumes
    parse = parse_volumes

    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        asking = api.command("cluster/answers.sh", kubeconfig, volumes.PATHS)
        return api.where_there_is_one(kubeconfig, asking)


class Inside(Framed[Contents]):
    """What runs in a namespace. Only what takes a part away asks for it."""

    of_cluster = True
    default = Contents
    parse = parse_contents

    def command(self, kubeconfig: str, namespace: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        return api.command("cluster/answers.sh", kubeconfig, contents_paths(namespace))


class FromKubeadm(Framed[KubeadmObjects]):
    """What kubeadm would make of its objects, and what there is of them. On the leader."""

    of_cluster = True
    parse = kubeadm_objects.parse

    @staticmethod
    def default() -> KubeadmObjects:
        return KubeadmObjects(error="there is no answer")

    def command(self, kubeconfig: str, config: str) -> str:
        """`kubeconfig`: the credentials' path; `config`: path of kubeadm's configuration."""
        return api.command(
            "cluster/kubeadm_objects.sh", kubeconfig, [config, *kubeadm_objects.paths()]
        )


class Present(Framed[ManagedObjects]):
    """The named objects as they are in the cluster; those that do not exist are missing."""

    of_cluster = True
    parse = parse_present

    @staticmethod
    def default() -> ManagedObjects:
        return ManagedObjects(error="there is no answer")

    @classmethod
    def merged(
        cls, arguments: Sequence[Mapping[str, Any]]
    ) -> tuple[type[Framed[Any]], dict[str, Any]] | None:
        references = {name: None for item in arguments for name in item["references"]}
        return cls, {"kubeconfig": arguments[0]["kubeconfig"], "references": tuple(references)}

    @classmethod
    def part(cls, combined: ManagedObjects, arguments: Mapping[str, Any]) -> ManagedObjects:
        names = {*map(tuple, arguments["references"])}
        return replace(
            combined, objects=tuple(item for item in combined.objects if key(item) in names)
        )

    def command(self, kubeconfig: str, references: Sequence[Key]) -> str:
        """`kubeconfig`: the credentials' path; `references`: kind, namespace and name of each."""
        return api.command("cluster/answers.sh", kubeconfig, map(path, references))


class LiveObjects(Framed[list[dict[str, Any]]]):
    """Objects of the cluster as they are now; those that do not exist are missing.

    Nothing as well where the API server does not answer: they are shown, not relied on.
    """

    of_plan = True

    default = list

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

    def process(self, output: list[str]) -> list[dict[str, Any]]:
        text = b64decode("".join(output)).decode()
        document = json.loads(text) if text.strip() else {}
        items = document.get("items", [document] if document else [])
        return [item for item in items if item.get("kind") != "Secret"]
