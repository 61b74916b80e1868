"""An answer over HTTP that has no end of its own: a watch, or a log that is followed."""

import contextlib
from collections.abc import Iterator

import urllib3
from urllib3.exceptions import HTTPError


class Lines:
    """An answer's lines, as they come. Ends with the answer, or when nothing came for too long."""

    def __init__(self, answer: urllib3.BaseHTTPResponse) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        remainder = b""
        # what ends it early is no error: who needs more asks again
        with contextlib.suppress(HTTPError, OSError):
            for chunk in self._answer.stream(1 << 16):
                *complete, remainder = (remainder + chunk).split(b"\n")
                yield from complete
        if remainder:
            yield remainder

    def stop(self) -> None:
        """End the stream, from another thread than the one that reads."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._answer.shutdown()
