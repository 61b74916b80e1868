"""Facts whose answer is one line of text, or nothing."""

from __future__ import annotations

from deploys.engine.framed import Framed


class OneLine(Framed[str]):
    """The first line that a command prints, without surrounding blanks; "" for no output."""

    abstract = True

    @staticmethod
    def default() -> str:
        return ""

    def process(self, output: list[str]) -> str:
        return output[0].strip()
