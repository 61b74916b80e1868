"""Every cause that `gpuboot diagnose` knows. The order decides nothing: evidence does."""

from __future__ import annotations

from gpuboot.diagnose.causes import (
    absent,
    control_plane,
    device_plugin,
    driver,
    etcd,
    exporter,
    extensions,
    gate,
    gpus,
    hosts,
    images,
    monitoring,
    names,
    network,
    pending,
    pods,
    rights,
    runtime,
    serving,
)
from gpuboot.diagnose.causes import (
    refusals as refused,
)

TABLE = (
    *hosts.TABLE,
    *driver.TABLE,
    *gpus.TABLE,
    *device_plugin.TABLE,
    *gate.TABLE,
    *runtime.TABLE,
    *absent.TABLE,
    *refused.TABLE,
    *control_plane.TABLE,
    *etcd.TABLE,
    *network.TABLE,
    *names.TABLE,
    *pending.TABLE,
    *pods.TABLE,
    *images.TABLE,
    *exporter.TABLE,
    *monitoring.TABLE,
    *rights.TABLE,
    *serving.TABLE,
    *extensions.TABLE,
)
