"""Reads of the API server for what may not be there."""

from typing import Any

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.objects import JsonReader


def find_json(cluster: JsonReader, path: str) -> Any:
    """The JSON below a path; None where there is no such object or API. Raises `ClusterError`."""
    try:
        return cluster.json(path)
    except ClusterError as error:
        if error.status == 404:
            return None
        raise
