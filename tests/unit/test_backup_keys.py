"""The timer of etcd's backups tells Prometheus when a control plane's repository keys end."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from gpuboot.config.support import KEY_END_METRIC, End, metrics
from tests.unit.test_backup import Machine

GPG = """\
#!/bin/sh
for file in "$@"; do :; done
case "$file" in
  *docker*) echo "pub:-:4096:1:8D81803C0EBFCD88:1487788586:::-:::scESC::::::23::0:" ;;
  *) echo "pub:-:2048:1:234654DA9A296436:1661417482:1798540000::-:::scSC::::::23::0:" ;;
esac
echo "fpr:::::::::FINGERPRINT:"
"""


def test_it_tells_when_the_keys_of_the_host_s_repositories_end(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.program("gpg", GPG)
    keyrings = machine.root / "etc/apt/keyrings"
    keyrings.mkdir(parents=True)
    for name in ("docker", "kubernetes"):
        (keyrings / f"gpuboot-{name}.asc").write_text("key")
    result = machine.run()
    assert result.returncode == 0, result.stderr
    file = machine.metrics / f"{KEY_END_METRIC}.prom"
    assert file.read_text().splitlines() == [
        f"# HELP {KEY_END_METRIC} When the key of a package repository ends.",
        f"# TYPE {KEY_END_METRIC} gauge",
        f'{KEY_END_METRIC}{{node="node1",repository="kubernetes",fingerprint="FINGERPRINT"}} '
        "1798540000",
    ]
    assert file.stat().st_mode & 0o777 == 0o644
    drift_ends = [End("repository_keys.kubernetes", "FINGERPRINT", date(2026, 12, 29))]
    lines = metrics(drift_ends, "lab", "drift")
    assert lines[:2] == file.read_text().splitlines()[:2], "node-exporter wants one text"
