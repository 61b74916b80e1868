"""Names of all pods of a shared GPU, as the exporter's page has them."""

from __future__ import annotations

from gpuboot.verify.prometheus import gpu_readings, parse_exposition
from tests.unit.test_shared_series import GPU, SHARED, exported


def test_the_exporter_names_all_pods_of_a_device() -> None:
    lines = []
    for name, labels, value in exported(GPU, SHARED["two pods"]):
        text = ",".join(f'{label}="{text}"' for label, text in labels.items())
        lines.append(f"{name}{{{text}}} {value:g}")
    (reading,) = gpu_readings(parse_exposition("\n".join(lines)), "gpu1")
    assert reading.pods == {"ml/train-0", "ml/train-1"}
