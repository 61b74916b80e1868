"""A server with metrics and logs: `python serving.py`, then
`curl -d 'one two three' http://localhost:8000/generate`.

The model answers with the words of its prompt, last first: it stands in for yours (`generate`). The
queue, the counters and the logs are real.
"""

from __future__ import annotations

import argparse
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from telemetry import Metrics, log_to_stdout

log = logging.getLogger("serving")
MOST_WAITING = 256


def generate(prompt: list[str]) -> list[str]:
    """What stands in for a model: tokens in, tokens out."""
    return prompt[::-1]


class Engine:
    """One thread that works on one request after the other; the others wait.

    + model: tokens in, tokens out
    """

    def __init__(
        self, metrics: Metrics, model: Callable[[list[str]], list[str]] = generate
    ) -> None:
        self._model = model
        self._queue: queue.Queue[tuple[list[str], Future[list[str]]]] = queue.Queue(MOST_WAITING)
        self._tokens = metrics.counter("ml_tokens", "Tokens that this pod's GPUs have processed")
        self._requests = metrics.counter("ml_requests", "Requests that have ended")
        self._waiting = metrics.gauge("ml_requests_waiting", "Requests that wait in the queue")
        self._running = metrics.gauge("ml_requests_running", "Requests being worked on")
        self._waiting.set(0)
        self._running.set(0)
        for phase in ("prompt", "generation"):
            self._tokens.add(0, phase=phase)
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, prompt: list[str]) -> list[str]:
        """The answer, when its turn has come. Raises `queue.Full` when too many wait."""
        answer: Future[list[str]] = Future()
        self._waiting.add(1)
        try:
            self._queue.put_nowait((prompt, answer))
        except queue.Full:
            self._waiting.add(-1)
            raise
        return answer.result()

    def _work(self) -> None:
        while True:
            prompt, answer = self._queue.get()
            self._waiting.add(-1)
            self._running.add(1)
            started = time.perf_counter()
            try:
                words = self._model(prompt)
            except Exception as error:
                log.exception("request failed")
                self._requests.add(outcome="error")
                self._running.add(-1)
                answer.set_exception(error)
                continue
            self._tokens.add(len(prompt), phase="prompt")
            self._tokens.add(len(words), phase="generation")
            self._requests.add(outcome="success")
            self._running.add(-1)
            seconds = round(time.perf_counter() - started, 6)
            log.info("request", extra={"tokens": len(words), "seconds": seconds})
            answer.set_result(words)


def listen(engine: Engine, port: int) -> ThreadingHTTPServer:
    """Answers `POST /generate` with the generated words, once `serve_forever` is called."""

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if self.path != "/generate":
                self.send_error(404)
                return
            prompt = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode().split()
            try:
                status, body = 200, " ".join(engine.submit(prompt))
            except queue.Full:
                status, body = 503, "too many requests wait"
            except Exception:
                status, body = 500, "the model failed"
            self.send_response(status)
            self.end_headers()
            self.wfile.write(f"{body}\n".encode())

        def log_message(self, format: str, *args: Any) -> None:
            """The engine logs each request."""

    return ThreadingHTTPServer(("", port), Requests)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--port", type=int, default=8000, help="of the requests")
    arguments.add_argument("--metrics-port", type=int, default=9464)
    options = arguments.parse_args()
    log_to_stdout()
    metrics = Metrics()
    metrics.serve(options.metrics_port)
    listen(Engine(metrics), options.port).serve_forever()


if __name__ == "__main__":
    main()
