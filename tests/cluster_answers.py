"""What an API server answers to the facts about a cluster: for fake hosts, and over HTTPS."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploys.engine.framed import Framed
from gpuboot.cluster import cluster_answers as api
from gpuboot.cluster import managed_objects
from tests.unit.ssh_server import HOST, Api, api_server

Json = dict[str, Any]
CLOCK = 1_800_000_000  # when a cluster was asked, in seconds since 1970
MISSING = {"kind": "Status", "message": "there is no such thing", "code": 404}


def item_list(*items: Json) -> Json:
    return {"items": list(items)}


def make_object(name: str, namespace: str = "", **fields: Any) -> Json:
    """An object. + fields: annotations, labels and so on of its metadata, and its other parts."""
    meta = {
        key: fields.pop(key) for key in ("annotations", "labels", "generation") if key in fields
    }
    place = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, **place, **meta}, **fields}


def lease(node: str, age_s: float = 3) -> Json:
    """The Lease of a node, renewed so many seconds before it was asked for."""
    renewed = datetime.fromtimestamp(CLOCK - age_s, UTC)
    wrote = {"manager": "kubelet", "operation": "Update", "time": f"{renewed:%Y-%m-%dT%H:%M:%SZ}"}
    return {
        "metadata": {"name": node, "namespace": "kube-node-lease", "managedFields": [wrote]},
        "spec": {"renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"},
    }


def cluster(record: str = "", **answers: Any) -> dict[str, Any]:
    """By path, the answers of a cluster that has nothing but what is given.

    + record: kubeadm's ClusterConfiguration
    + answers: by the names of `gpuboot.cluster.cluster_answers`
    """
    kubeadm = make_object("kubeadm-config", "kube-system", data={"ClusterConfiguration": record})
    defaults = {
        **dict.fromkeys(api.PATHS, item_list()),
        api.VERSION: {"gitVersion": "v1.36.6"},
        api.KUBEADM: kubeadm,
        api.FLANNEL: None,
        api.POLICIES: None,
    }
    return {**defaults, **{getattr(api, name): answer for name, answer in answers.items()}}


def packed(answers: Mapping[str, Any]) -> list[str]:
    """What `answers.sh` prints of these answers; None: there is nothing behind a path."""
    text = "".join(
        f"{json.dumps(MISSING if body is None else body)}\n\n{404 if body is None else 200} \x1e\n"
        for body in answers.values()
    )
    packed_text = base64.b64encode(gzip.compress(text.encode())).decode()
    return [f"answers\t{packed_text}", f"clock\t{CLOCK}", "end\tok"]


def managed(*objects: Json) -> dict[str, Any]:
    """By path, the answers about objects of Helm and of gpuboot; none is a Secret."""
    items_by_path: dict[str, list[Json]] = {path: [] for path in managed_objects.PATHS.values()}
    for item in objects:
        items_by_path[managed_objects.PATHS[item["kind"]]].append(item)
    return {path: item_list(*items) for path, items in items_by_path.items()}


def packed_managed(*objects: Json) -> list[str]:
    """What `managed_objects.sh` prints of these objects, where there are no Secrets."""
    return ["secrets\t200", *packed(managed(*objects))]


def revision(
    chart: str, version: str, status: str, number: int, values: Json | None, manifest: str = ""
) -> str:
    """A release as Helm keeps it in a Secret."""
    record = {
        "name": chart,
        "info": {"status": status},
        "chart": {"metadata": {"name": chart, "version": version}, "templates": []},
        "config": values,
        "manifest": manifest,
        "version": number,
    }
    return base64.b64encode(gzip.compress(json.dumps(record).encode())).decode()


def releases(revisions: Mapping[str, str | None], managed: bool = True) -> list[str]:
    """What Helm's `fact.sh` prints. + revisions: path -> `revision`; None: no release"""
    lines = [f"asked\t{path}" for path in revisions]
    for number, text in enumerate(revisions.values()):
        mark = [f"managed\t{number}"] if managed and text else []
        lines += [f"status\t{number} 200", *mark, *([f"release\t{number} {text}"] if text else [])]
    return [*lines, "end\tok"]


class Host:
    """A host with a kubeconfig, and curl that knows the way to the API server."""

    def __init__(self, folder: Path, kubeconfig: str) -> None:
        self.kubeconfig = folder / "admin.conf"
        self.kubeconfig.write_text(kubeconfig)
        self.log = folder / "curl.log"
        program = folder / "curl"
        program.write_text(
            f"""#!/bin/sh
printf '%s\\n' "$*" >>{self.log}
exec {shutil.which("curl")} "$@" --connect-to {HOST}::127.0.0.1:
"""
        )
        program.chmod(0o755)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.log.parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["sh", "-c", command],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=30,
        )

    def read(self, fact: Framed[Any], **arguments: Any) -> Any:
        result = self.run(str(fact.command(**arguments)))
        return fact.process(result.stdout.splitlines())


@contextmanager
def served(folder: Path, answers: Mapping[str, Any]) -> Iterator[Host]:
    """A host beside an API server that has these answers, by path."""

    def do_GET(self: Api) -> None:
        url = urllib.parse.urlsplit(self.path)
        body = answers.get(self.path, answers.get(url.path))
        status = 404 if body is None else body.get("code", 200)
        pretty = "pretty=true" in url.query
        text = json.dumps(MISSING if body is None else body, indent=2 if pretty else None)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    before, Api.do_GET = Api.do_GET, do_GET  # type: ignore[method-assign]
    Api.do_PATCH = do_GET  # type: ignore[attr-defined]
    try:
        with api_server(folder) as kubeconfig:
            yield Host(folder, kubeconfig)
    finally:
        Api.do_GET = before  # type: ignore[method-assign]
