"""The files on the control machine that settings name, before anything is touched."""

from __future__ import annotations

from gpuboot.cluster import backup_copy
from gpuboot.config import secret_files
from gpuboot.config.problems import Problem
from gpuboot.config.secret_files import SecretFile
from gpuboot.config.settings import Settings
from gpuboot.hosts import registries
from gpuboot.monitoring import alerting
from gpuboot.monitoring.charts import log_values, remote_write
from gpuboot.telemetry.collectors import parse_collectors


def problems(settings: Settings) -> list[Problem]:
    """What is missing, unreadable, empty or of the wrong kind; no content is quoted."""
    return secret_files.read(_files(settings))[1]


def warnings(settings: Settings) -> list[str]:
    """Secret files that others on the control machine can read."""
    return secret_files.exposed(_files(settings).values())


def _files(settings: Settings) -> dict[str, SecretFile]:
    sources: dict[str, SecretFile] = {
        source.setting: source
        for source in (
            *registries.files(settings).values(),
            *backup_copy.files(settings).values(),
        )
    }
    if settings.monitoring.enabled:
        sources |= {**alerting.files(settings), **remote_write.files(settings)}
    sources |= {source.setting: source for source in log_values.files(settings).values()}
    if settings.exporter.collectors_file:
        setting, path = "exporter.collectors_file", settings.exporter.collectors_file
        sources[setting] = SecretFile(setting, path, _collectors, public=True)
    return sources


def _collectors(text: str) -> str:
    try:
        parse_collectors(text)
    except ValueError as error:
        return str(error)
    return ""
