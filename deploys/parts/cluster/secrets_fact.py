"""Secrets of the cluster, without reading them out. On the leader."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deploys.engine.framed import Framed
from deploys.parts.cluster import api_scripts as api
from deploys.parts.cluster.kubectl import ADMIN_CONF
from gpuboot.hosts.fact_output import Fields

Digests = dict[str, str]  # SHA-256 of each value, by key


def _path(namespace: str, secret: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{secret}?pretty=true"


class AllSecretDigests(Framed[dict[str, Digests]]):
    """Digests of several Secrets by their path, by one command; as `SecretDigests` has them."""

    of_cluster = True
    default = dict

    def command(self, paths: Iterable[str]) -> str:
        asking = api.command("cluster/secrets_fact.sh", ADMIN_CONF, paths)
        return api.where_there_is_one(ADMIN_CONF, asking)

    def process(self, output: list[str]) -> dict[str, Digests]:
        values = Fields(output)
        if error := values.first("error"):
            raise ValueError(error)
        statuses = values.pairs("status")
        digests_by_path: dict[str, Digests] = {}
        for number, path in enumerate(values.all("asked")):
            if (status := statuses.get(str(number))) not in ("200", "404"):
                raise ValueError(f"{path}: the API server answers {status}")
            rows = values.words("digest", 3)
            digests_by_path[path] = {
                key: digest for place, key, digest in rows if place == str(number)
            }
        return digests_by_path


class SecretDigests(Framed[Digests]):
    """Key -> SHA-256 of each value of a Secret; {} when there is no such Secret, or no cluster."""

    of_cluster = True
    default = dict

    def command(self, namespace: str, secret: str) -> str:
        return AllSecretDigests().bare_command({"paths": [_path(namespace, secret)]})

    def process(self, output: list[str]) -> Digests:
        return next(iter(AllSecretDigests().value(output).values()))

    @classmethod
    def merged(
        cls, arguments: Sequence[Mapping[str, Any]]
    ) -> tuple[type[Framed[Any]], dict[str, Any]] | None:
        return AllSecretDigests, {
            "paths": [_path(item["namespace"], item["secret"]) for item in arguments]
        }

    @classmethod
    def part(cls, combined: dict[str, Digests], arguments: Mapping[str, Any]) -> Digests:
        return combined.get(_path(arguments["namespace"], arguments["secret"]), {})
