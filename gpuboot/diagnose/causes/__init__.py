"""Every cause that `gpuboot diagnose` knows. The order decides nothing: evidence does."""

from __future__ import annotations

from gpuboot.diagnose.causes import (
    control_plane,
    driver,
    exporter,
    gate,
    gpus,
    hosts,
    images,
    monitoring,
    names,
    network,
    pending,
    pods,
    runtime,
)

TABLE = (
    *hosts.TABLE,
    *driver.TABLE,
    *gpus.TABLE,
    *gate.TABLE,
    *runtime.TABLE,
    *control_plane.TABLE,
    *network.TABLE,
    *names.TABLE,
    *pending.TABLE,
    *pods.TABLE,
    *images.TABLE,
    *exporter.TABLE,
    *monitoring.TABLE,
)
