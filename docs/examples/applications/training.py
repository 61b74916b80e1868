"""Training with metrics and logs: `python training.py --port 9464`.

The model is small, so that the example needs no library: a straight line is fitted to points by
stochastic gradient descent. Put your own step in place of `Line.step`; the rest stays as it is.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import time
from collections.abc import Iterator

from telemetry import Metrics, log_to_stdout

log = logging.getLogger("training")


class Line:
    """y = slope * x + bias."""

    def __init__(self, rate: float = 0.1) -> None:
        self.slope, self.bias, self.rate = 0.0, 0.0, rate

    def step(self, batch: list[tuple[float, float]]) -> float:
        """One step on a batch of points. Returns the mean squared error before it."""
        errors = [self.slope * x + self.bias - y for x, y in batch]
        count = len(batch)
        slope = sum(2 * e * x for e, (x, _) in zip(errors, batch, strict=True)) / count
        self.slope -= self.rate * slope
        self.bias -= self.rate * sum(2 * e for e in errors) / count
        return sum(e * e for e in errors) / count


def batches(size: int) -> Iterator[list[tuple[float, float]]]:
    """Points of y = 3x - 1, without an end."""
    points = itertools.cycle((x / 50, 3 * x / 50 - 1) for x in range(100))
    while True:
        yield list(itertools.islice(points, size))


def train(metrics: Metrics, steps: int, size: int, pause_s: float) -> Line:
    """Train for some steps, 0 for no end.

    + size: samples in a batch
    + pause_s: seconds to sleep after each step; a real step needs none
    """
    samples = metrics.counter("ml_samples", "Samples that this pod's GPUs have processed")
    step_counter = metrics.counter("ml_steps", "Optimizer steps")
    busy = metrics.counter("ml_step_seconds", "Time spent in optimizer steps", "seconds")
    loss = metrics.gauge("ml_loss", "Loss of the last step")
    model = Line()
    for number, batch in enumerate(batches(size), 1):
        started = time.perf_counter()
        value = model.step(batch)
        busy.add(time.perf_counter() - started)
        samples.add(len(batch), phase="training")
        step_counter.add()
        loss.set(value)
        if number % 10 == 1:
            log.info("step", extra={"step": number, "loss": value})
        if number == steps:
            break
        time.sleep(pause_s)
    log.info("done", extra={"step": number, "loss": value})
    return model


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--port", type=int, default=9464, help="of the metrics")
    arguments.add_argument("--steps", type=int, default=0, help="0: without an end")
    arguments.add_argument("--batch-size", type=int, default=64)
    arguments.add_argument("--pause", type=float, default=1.0, help="seconds after each step")
    options = arguments.parse_args()
    log_to_stdout()
    metrics = Metrics()
    metrics.serve(options.port)
    train(metrics, options.steps, options.batch_size, options.pause)


if __name__ == "__main__":
    main()
