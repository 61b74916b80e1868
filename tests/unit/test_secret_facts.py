"""Secrets and Helm's releases, as a shell reads them beside an API server that answers."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from deploys.engine.batch import Batch, Request
from deploys.parts.cluster.secret_operations import digests
from deploys.parts.cluster.secrets_fact import SecretDigests
from deploys.parts.helm.fact import HelmRelease
from gpuboot.cluster.helm_releases import Release, release_path
from tests.cluster_answers import item_list, make_object, revision, served

SECRETS = "/api/v1/namespaces/w/secrets"
VALUES = {"a": "v1", "ca.crt": "-----BEGIN\nx", "empty": ""}
DATA = {key: base64.b64encode(value.encode()).decode() for key, value in VALUES.items()}
NOTES = {"note": '  "data": {', "last": json.dumps({"data": {"x": "y"}}, indent=2)}


def test_secrets_are_told_by_their_digests(tmp_path: Path) -> None:
    answers = {
        f"{SECRETS}/full": make_object("full", "w", annotations=NOTES) | {"data": DATA},
        f"{SECRETS}/bare": make_object("bare", "w"),
        f"{SECRETS}/refused": {"code": 403, "message": "no"},
    }

    def request(name: str) -> Request:
        fact_request = Request.of(SecretDigests, {"namespace": "w", "secret": name})
        assert fact_request
        return fact_request

    with served(tmp_path, answers) as host:

        def digests_of(*names: str) -> list[Any]:
            batch = Batch()
            command = batch.command(requests=[request(name) for name in names])
            local_command = command.replace("/etc/kubernetes/admin.conf", str(host.kubeconfig))
            result = host.run(local_command)
            assert "v1" not in result.stdout.split()
            return batch.process(result.stdout.splitlines())

        assert digests_of("full", "bare", "none") == [digests(VALUES), {}, {}]
        assert host.log.read_text().count("\n") == 1
        assert digests_of("full") == [digests(VALUES)]
        assert "answers 403" in str(digests_of("refused")[0])
        host.kubeconfig.unlink()
        assert digests_of("full") == [{}]


def stored(release: str, number: int, **fields: Any) -> dict[str, Any]:
    return make_object(
        f"sh.helm.release.v1.{release}.v{number}", "w", labels={"name": release}, **fields
    )


def secret(payload: str) -> dict[str, Any]:
    return {"release": base64.b64encode(payload.encode()).decode()}


def test_releases_are_read_from_their_newest_revision(tmp_path: Path) -> None:
    newest = revision("web", "1.1.0", "pending-upgrade", 10, {"a": {"b": 1}})
    plain = revision("db", "v2", "deployed", 1, None)
    answers = {
        release_path("web", "w"): item_list(*(stored("web", number) for number in (8, 9, 10))),
        release_path("db", "w"): item_list(stored("db", 1)),
        release_path("none", "w"): item_list(),
        f"{SECRETS}/sh.helm.release.v1.web.v10": stored("web", 10, data=secret(newest)),
        f"{SECRETS}/sh.helm.release.v1.db.v1": stored("db", 1, data=secret(plain)),
    }
    with served(tmp_path, answers) as host:
        batch = Batch()
        config = str(host.kubeconfig)
        requests = [
            Request.of(HelmRelease, {"release": name, "namespace": "w", "kubeconfig": config})
            for name in ("none", "web", "db")
        ]
        result = host.run(batch.command(requests=[item for item in requests if item]))
        releases = batch.process(result.stdout.splitlines())
        assert host.log.read_text().count("\n") == 2
        single_release = host.read(HelmRelease(), release="db", namespace="w", kubeconfig=config)
    web = Release("web", "1.1.0", "pending-upgrade", 10, {"a": {"b": 1}})
    assert releases == [Release(), web, Release("db", "v2", "deployed", 1)]
    assert single_release == releases[2]
