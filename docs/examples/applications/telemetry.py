"""Metrics in OpenMetrics text and logs as JSON, with Python's standard library alone.

Copy this file beside your program. Names, labels and fields: docs/applications.md of gpuboot.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
Labels = tuple[tuple[str, str], ...]


class Metric:
    """A family of series: a counter, which only rises, or a gauge.

    + name: of the family; a counter's series is called `name_total`
    + help: what is counted
    + unit: "" or the last part of the name, such as `seconds`
    """

    def __init__(
        self, kind: Literal["counter", "gauge"], name: str, help: str, unit: str = ""
    ) -> None:
        if not _NAME.fullmatch(name) or name.endswith("_total"):
            raise ValueError(f"{name}: not the name of a family (without _total)")
        if unit and not name.endswith(f"_{unit}"):
            raise ValueError(f"{name}: its name must end with its unit {unit}")
        self.kind, self.name, self.help, self.unit = kind, name, help, unit
        self._values: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def add(self, amount: float = 1, **labels: str) -> None:
        """Add to the value, 0 at first. A counter takes nothing below 0."""
        if self.kind == "counter" and amount < 0:
            raise ValueError(f"{self.name} is a counter: it cannot fall by {-amount}")
        key = tuple(sorted(labels.items()))
        with self._lock:
            self._values[key] = self._values.get(key, 0.0) + amount

    def set(self, value: float, **labels: str) -> None:
        """Set a gauge."""
        if self.kind == "counter":
            raise ValueError(f"{self.name} is a counter: add to it")
        with self._lock:
            self._values[tuple(sorted(labels.items()))] = float(value)

    def lines(self) -> Iterable[str]:
        """The family in OpenMetrics text."""
        yield f"# TYPE {self.name} {self.kind}"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {_escaped(self.help)}"
        with self._lock:
            values = sorted(self._values.items())
        suffix = "_total" if self.kind == "counter" else ""
        for labels, value in values:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
            yield f"{self.name}{suffix}{{{inside}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class Metrics:
    """All metrics of a program, and the page that Prometheus reads."""

    def __init__(self) -> None:
        self._families: dict[str, Metric] = {}

    def counter(self, name: str, help: str, unit: str = "") -> Metric:
        """A new counter. Name it without `_total`."""
        return self._new(Metric("counter", name, help, unit))

    def gauge(self, name: str, help: str, unit: str = "") -> Metric:
        """A new gauge."""
        return self._new(Metric("gauge", name, help, unit))

    def _new(self, metric: Metric) -> Metric:
        if metric.name in self._families:
            raise ValueError(f"{metric.name} exists")
        self._families[metric.name] = metric
        return metric

    def text(self) -> str:
        """The page."""
        lines = [line for family in self._families.values() for line in family.lines()]
        return "\n".join([*lines, "# EOF", ""])

    def serve(self, port: int) -> ThreadingHTTPServer:
        """Answer `GET /metrics` in a thread of its own, on all addresses of the pod."""
        page = self.text

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(404)
                    return
                body = page().encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """A scrape every few seconds is no news."""

        server = ThreadingHTTPServer(("", port), Page)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


# field of a log line -> variable of the environment (docs/examples/applications/*.yaml set them)
PLACE = {"node": "NODE_NAME", "namespace": "POD_NAMESPACE", "pod": "POD_NAME"}


def place(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Where this program runs: fields of each log line. What is not known is left out.

    `gpu_uuid` holds the UUIDs of the pod's GPUs, separated by commas, as the label `UUID` of the
    exporter's series has them; of a MIG instance that of its GPU.
    """
    labels = {field: environment.get(variable, "") for field, variable in PLACE.items()}
    labels["gpu_uuid"] = ",".join(gpu_uuids())
    return {field: text for field, text in labels.items() if text}


def gpu_uuids(command: tuple[str, ...] = ("nvidia-smi", "-L")) -> list[str]:
    """UUIDs of the GPUs that this container sees; [] where nobody can tell.

    NVIDIA's container toolkit brings nvidia-smi into the container. NVIDIA_VISIBLE_DEVICES does not
    tell: with CDI it says `void`.
    """
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return re.findall(r"^GPU \d+:.*\(UUID: (GPU-[0-9A-Za-z-]+)\)", result.stdout, re.MULTILINE)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the place, and what `extra` names."""

    _PLAIN = frozenset(vars(logging.makeLogRecord({})))

    def __init__(self, location: Mapping[str, str]) -> None:
        super().__init__()
        self._location = dict(location)

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc)  # noqa: UP017 (Python 3.10)
        line: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = vars(record).items()
        line |= {key: value for key, value in extra if key not in {*self._PLAIN, "message"}}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({**line, **self._location}, default=str)


def log_to_stdout(location: Mapping[str, str] | None = None, level: int = logging.INFO) -> None:
    """Have every logger write JSON lines to standard output, where containers' logs come from."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines(place() if location is None else location))
    logging.basicConfig(level=level, handlers=[handler], force=True)
