"""Product names of NVIDIA GPUs by PCI device id, for people who read them."""

from collections import Counter
from collections.abc import Iterable, Mapping

from gpuboot.config.tables import read_table
from gpuboot.hosts.gpu_models import generation

_ROWS = read_table("hosts/gpu_names.toml")
NAMES: Mapping[int, str] = {int(device, 16): name for device, name in _ROWS.items()}


def name(device: int) -> str:
    """How people call a GPU: `H100 SXM5 80GB`, else `Hopper GPU 10de:2399`.

    + device: its PCI device id
    """
    return NAMES.get(device) or f"{generation(device).name} GPU 10de:{device:04x}"


def summary(devices: Iterable[int]) -> str:
    """The GPUs of a machine by model: `8 x H100 SXM5 80GB`, or `no GPU`."""
    counts = Counter(name(device) for device in devices)
    return ", ".join(f"{count} x {model}" for model, count in counts.items()) or "no GPU"
