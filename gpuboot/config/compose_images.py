"""Names of the images that a Docker host pulls, from their registries or from the site's mirror."""

from urllib.parse import urlsplit

from gpuboot.config.settings import Mirrors, Settings
from gpuboot.config.versions import Lock

REPOSITORIES = {
    "dcgm_exporter": "nvcr.io/nvidia/k8s/dcgm-exporter",
    "prometheus": "quay.io/prometheus/prometheus",
    "alertmanager": "quay.io/prometheus/alertmanager",
    "node_exporter": "quay.io/prometheus/node-exporter",
    "grafana": "docker.io/grafana/grafana",
}


def image(key: str, settings: Settings, lock: Lock) -> str:
    """The reference of one of our images at the version of the lock. `key`: one of `NAMES`."""
    return mirrored(f"{REPOSITORIES[key]}:{getattr(lock.images, key)}", settings.mirrors)


def mirrored(reference: str, mirrors: Mirrors) -> str:
    """An image's name at the mirror of its registry; the name itself where there is none.

    Docker knows no mirrors for any registry but Docker Hub, so the mirror is named instead:
    with `https://mirror.example/v2/quay.io` for quay.io, `quay.io/a/b:1` is
    `mirror.example/quay.io/a/b:1`.
    """
    registry, _, path = reference.partition("/")
    url = mirrors.images.get(registry) or mirrors.images.get("*")
    if url is None:
        return reference
    parts = urlsplit(url)
    prefix = parts.path.removeprefix("/v2").strip("/")
    return "/".join(part for part in (parts.netloc, prefix, path) if part)


def mirror_addresses(mirrors: Mirrors) -> list[str]:
    """Addresses of all mirrors, as Docker names folders of certificates after them."""
    return sorted({urlsplit(url).netloc for url in mirrors.images.values()})
