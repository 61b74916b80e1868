"""A real Prometheus with a made-up cluster's series, and what our rules make of them."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import requests
import yaml

from gpuboot.config.settings import parse_settings
from gpuboot.config.settings.base import seconds
from gpuboot.monitoring import rules
from gpuboot.telemetry.expressions import metric_names
from lab.dashboard_preview.draw import prometheus_query
from lab.dashboard_preview.panels import TimeRange
from tests.populations.pictures.cluster import START, series
from tests.populations.pictures.gpus import INVENTORY, MINUTES
from tests.tools import promtool

STEP_S = 30
PORT = 19097
END = START + MINUTES * 60
SETTINGS = parse_settings(
    {
        "exporter": {"scrape_interval": f"{STEP_S}s"},
        "cost": {"gpu_hour": {"NVIDIA H100 80GB HBM3": 2.4, "*": 0.6}},
        "alerts": {"rules": {"GPUDriverVersionSkew": {"enabled": False}}},
    }
)
Rule = dict[str, Any]
Sample = tuple[str, dict[str, str], float, float]


def make(data: Path) -> None:
    """Fill Prometheus' folder of data with the cluster's series, records and alerts."""
    _store(data, _samples())
    groups = rules.groups(SETTINGS, INVENTORY)
    rule_list = [rule for group in groups for rule in group["rules"]]
    for level in _levels([rule for rule in rule_list if "record" in rule]):
        with prometheus(data):
            _record(data, level)
    with prometheus(data):
        alerts = list(_alerts([rule for rule in rule_list if "alert" in rule]))
    _store(data, alerts)


def _samples() -> Iterator[Sample]:
    for name, labels, value in series():
        for at in range(0, MINUTES * 60 + 1, STEP_S):
            sample = value(at / 60)
            if sample is not None:
                yield name, labels, START + at, sample


def _store(data: Path, samples: Iterable[Sample]) -> None:
    """Add samples to Prometheus' folder of data."""
    page = data.with_suffix(".txt")
    with page.open("w") as file:
        for name, labels, at, value in samples:
            inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
            file.write(f"{name}{{{inside}}} {value!r} {at}\n")
        file.write("# EOF\n")
    _run("tsdb", "create-blocks-from", "openmetrics", str(page), str(data))


def _record(data: Path, records: list[Rule]) -> None:
    """Add what recording rules make of the data."""
    path = data.with_suffix(".yml")
    path.write_text(yaml.safe_dump({"groups": [{"name": "records", "rules": records}]}))
    times = (f"--start={START}", f"--end={END}", f"--eval-interval={STEP_S}s")
    destination = (f"--url=http://127.0.0.1:{PORT}", f"--output-dir={data}")
    _run("tsdb", "create-blocks-from", "rules", *times, *destination, str(path))


def _run(*arguments: str) -> None:
    subprocess.run([str(promtool()), *arguments], check=True, stdout=subprocess.DEVNULL)


def _levels(records: list[Rule]) -> list[list[Rule]]:
    """Records in groups, each of which reads only what those before it recorded."""
    pending_records = {rule["record"] for rule in records}
    levels = []
    while pending_records:
        level = [
            rule
            for rule in records
            if rule["record"] in pending_records
            and not (metric_names(rule["expr"]) - {rule["record"]}) & pending_records
        ]
        pending_records -= {rule["record"] for rule in level}
        levels.append(level)
    return levels


@contextlib.contextmanager
def prometheus(data: Path) -> Iterator[str]:
    """A Prometheus that answers from the data; its address."""
    config = data.with_name("prometheus.yml")
    config.write_text("{}")
    options = (
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=10y",
        f"--web.listen-address=127.0.0.1:{PORT}",
        "--log.level=error",
    )
    url = f"http://127.0.0.1:{PORT}"
    server = subprocess.Popen([str(promtool().with_name("prometheus")), *options])
    try:
        while server.poll() is None:
            with contextlib.suppress(requests.ConnectionError):
                if requests.get(f"{url}/-/ready", timeout=5).ok:
                    break
            time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait()


def _alerts(alerts: list[Rule]) -> Iterator[Sample]:
    """ALERTS and ALERTS_FOR_STATE, as Prometheus would have written them."""
    query = prometheus_query(f"http://127.0.0.1:{PORT}", TimeRange(START, END, STEP_S))
    for rule in alerts:
        # Prometheus' own templates (what an XID asks for) are not filled in here
        texts = {key: "reset" if "{{" in text else text for key, text in rule["labels"].items()}
        for labels, points in query(rule["expr"], False):
            alert_labels = {**labels, **texts, "alertname": rule["alert"]}
            since, before = 0.0, 0.0
            for at, _ in points:
                since = at if at - before > 1.5 * STEP_S else since
                before = at
                firing = at - since >= seconds(rule.get("for", "0s"))
                state = {"alertstate": "firing" if firing else "pending"}
                yield "ALERTS", {**alert_labels, **state}, at, 1.0
                yield "ALERTS_FOR_STATE", alert_labels, at, since
