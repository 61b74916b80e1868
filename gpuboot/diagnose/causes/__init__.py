"""Every cause that `gpuboot diagnose` knows. The order decides nothing: evidence does."""

from __future__ import annotations

from gpuboot.diagnose.causes import (
    absent_causes,
    control_plane_causes,
    device_plugin_causes,
    driver_causes,
    etcd_causes,
    exporter_causes,
    extensions_causes,
    gate_causes,
    gpus_causes,
    hosts_causes,
    images_causes,
    monitoring_causes,
    names_causes,
    network_causes,
    pending_causes,
    pods_causes,
    rights_causes,
    runtime_causes,
    serving_causes,
    unready_causes,
)
from gpuboot.diagnose.causes import refusals_causes as refused

TABLE = (
    *hosts_causes.TABLE,
    *driver_causes.TABLE,
    *gpus_causes.TABLE,
    *device_plugin_causes.TABLE,
    *gate_causes.TABLE,
    *runtime_causes.TABLE,
    *absent_causes.TABLE,
    *refused.TABLE,
    *control_plane_causes.TABLE,
    *etcd_causes.TABLE,
    *network_causes.TABLE,
    *names_causes.TABLE,
    *pending_causes.TABLE,
    *pods_causes.TABLE,
    *images_causes.TABLE,
    *exporter_causes.TABLE,
    *monitoring_causes.TABLE,
    *rights_causes.TABLE,
    *serving_causes.TABLE,
    *extensions_causes.TABLE,
    *unready_causes.TABLE,
)
