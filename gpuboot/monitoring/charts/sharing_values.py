"""Values of gpu-operator for GPUs that are shared: of the device plugin and the MIG manager."""

from __future__ import annotations

import hashlib

import yaml

from gpuboot.cluster.values import Values
from gpuboot.config.settings import MigPart, Settings
from gpuboot.hosts import gpu_sharing, mig_profiles

PLUGIN_MAP = "gpuboot-device-plugin"
# where the values have the configurations of the device plugin, by name
PLUGIN_CONFIGS = ("devicePlugin", "config", "data")
LAYOUTS_MAP = "gpuboot-mig-layouts"


def device_plugin(settings: Settings) -> Values:
    """Configurations of the device plugin, each named by what stands in it; {}: none is needed.

    Nodes choose theirs by a label. The default's name changes with any of them: it is in the pod
    template (gpu-operator v26.7.0, object_controls.go:2893 and :2929), so the pods restart with new
    content.
    """
    configurations = dict(
        sorted(gpu_sharing.plugin_config(item, settings) for item in settings.sharing.values())
    )
    if settings.gpu_operator.time_slices == 1 and not configurations:
        return {}
    default, text = gpu_sharing.plugin_config(None, settings)
    if configurations:
        default = f"{default.rpartition('-')[0]}-{_digest(repr((text, configurations)))}"
    data = {default: text, **configurations}
    return {"config": {"name": PLUGIN_MAP, "create": True, "default": default, "data": data}}


def mig_manager(settings: Settings) -> Values:
    """The MIG manager, with layouts of the settings where nodes ask for some of them.

    Without any, it finds the layouts that a node's GPUs can have by itself (mig-manager v0.13.0 and
    newer). With some, the file has to have all that nodes ask for. Another content has another
    ConfigMap, so that its pods restart with it.
    """
    enabled = settings.gpu_operator.mig_manager
    layout_names = {item.mig for item in settings.sharing.values() if item.mig}
    if not enabled or not layout_names & set(settings.mig_layouts):
        return {"enabled": enabled}
    layouts = {gpu_sharing.DISABLED: [{"devices": "all", "mig-enabled": False}]}
    for name in sorted(layout_names):
        parts = settings.mig_layouts.get(name)
        layouts[gpu_sharing.layout_label(name, settings)] = (
            [_part(part) for part in parts] if parts else _of_all(name)
        )
    text = yaml.safe_dump({"version": "v1", "mig-configs": layouts}, sort_keys=False)
    config = {
        "name": f"{LAYOUTS_MAP}-{_digest(text)}",
        "create": True,
        "default": gpu_sharing.DISABLED,
        "data": {"config.yaml": text},
    }
    return {"enabled": True, "config": config}


def _part(part: MigPart) -> Values:
    devices = part.gpus if part.gpus == "all" else list(part.gpus)
    if not part.instances:
        return {"devices": devices, "mig-enabled": False}
    return {"devices": devices, "mig-enabled": True, "mig-devices": dict(part.instances)}


def _of_all(name: str) -> list[Values]:
    """A layout of the MIG manager's own, as the operator's file has it: for all GPUs where every
    model gets the same, else for each model that can have it.
    """
    if name == gpu_sharing.DISABLED:
        return [{"devices": "all", "mig-enabled": False}]
    groups = mig_profiles.grouped_counts(name)
    return [
        {
            **(
                {"device-filter": [f"0x{device_id:04X}10DE" for device_id in ids]}
                if len(groups) > 1
                else {}
            ),
            "devices": "all",
            "mig-enabled": True,
            "mig-devices": dict(counts),
        }
        for counts, ids in groups
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
