"""What an API server answered to several questions at once (`deploys/parts/cluster/api.sh`)."""

import gzip
import json
import re
from base64 import b64decode
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuboot.hosts.fact_output import FactOutputError, Fields

Json = dict[str, Any]

_LONGEST_MESSAGE = 1000  # characters: an admission webhook may write a page

# after each answer: its HTTP status, and a mark that stands in no JSON
_END = re.compile(r"\n(\d{3}) \x1e\n")


@dataclass(frozen=True)
class Answers:
    """What there is behind each path.

    + error: why there is no answer; "" when there is one
    + clock: when that was, by the clock of the host that asked, in seconds since 1970
    """

    error: str = ""
    documents: dict[str, Json] = field(default_factory=dict)
    clock: float = 0.0

    def items(self, path: str) -> list[Json]:
        """The objects of a list; none where there is no such list."""
        items: list[Json] = self.documents.get(path, {}).get("items") or []
        return items


def parse_answers(
    lines: Iterable[str], paths: Sequence[str], optional: Collection[str] = ()
) -> Answers:
    """What `deploys/parts/cluster/answers.sh` printed.

    + paths: what it was asked, in that order
    + optional: those of them that there may be nothing behind

    Raises `FactOutputError` for an answer that is not whole.
    """
    values = Fields(lines)
    if error := values.first("error"):
        return Answers(error)
    text = gzip.decompress(b64decode(values.first("answers"))).decode()
    *parts, remainder = _END.split(text)
    texts, statuses = parts[::2], parts[1::2]
    if remainder or len(statuses) != len(paths):
        raise FactOutputError("the API server's answers are not whole")
    documents = {}
    for path, answer, status in zip(paths, texts, statuses, strict=True):
        if status == "200":
            documents[path] = json.loads(answer)
        elif status != "404" or path not in optional:
            return Answers(f"{path}: {error_message(answer) or status}")
    return Answers(documents=documents, clock=values.number("clock"))


def parse_objects(values: Fields) -> tuple[str, tuple[Json, ...]]:
    """Objects that were asked for one by one, less those that are not there; and why not, or "".

    Raises `FactOutputError` for an answer that is not whole.
    """
    if error := values.first("error"):
        return error, ()
    text = gzip.decompress(b64decode(values.first("answers"))).decode()
    *parts, remainder = _END.split(text)
    if remainder:
        raise FactOutputError("the API server's answers are not whole")
    answers = list(zip(parts[::2], parts[1::2], strict=True))
    for answer, status in answers:
        if status not in ("200", "404"):
            return error_message(answer) or status, ()
    return "", tuple(json.loads(answer) for answer, status in answers if status == "200")


def error_message(answer: str) -> str:
    """The message of an answer that is an error; the beginning of one that is no JSON."""
    try:
        return str(json.loads(answer)["message"])[:_LONGEST_MESSAGE]
    except (ValueError, LookupError, TypeError):
        return answer.strip()[:200]
