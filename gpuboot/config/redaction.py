"""Secrets are taken out of what was read before anybody sees it: those that the settings know by
their content, and others by how they look.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from gpuboot.config.settings.secret import Secret

HIDDEN = "***"
_SHORTEST = 6  # characters of a secret's line that is looked for: less would hide plain words
_NAMES = (
    r"password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|"
    r"credentials?|key-data|certificate-key|routing[-_]?key"
)
_SECRET = re.compile(rf"(?i)(?:{_NAMES})$")
# what is replaced by the first group and the mark
_LOOKS = (
    re.compile(
        r"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL
    ),
    re.compile(r"(://)[^/@\s]+(?=@)"),
    re.compile(r"(hooks\.slack\.com/services/)\S+"),
    re.compile(r"(?i)((?:bearer|basic) +)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"()\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]+)?"),
    # a bootstrap token of kubeadm
    re.compile(r"()\b[a-z0-9]{6}\.[a-z0-9]{16}\b"),
    re.compile(
        r"()\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|nvapi-[\w-]{20,}|"
        r"xox[abprs]-[\w-]{10,})"
    ),
    re.compile(rf"(?i)(--?[\w-]*(?:{_NAMES})[= ]+)[^\s\"',;]{{3,}}"),
    re.compile(
        rf"(?i)([\w.-]*(?:{_NAMES})[\w.-]*\\?[\"']?\s*[=:]\s*\\?[\"']?)[^\s\"',;&}}\\]{{3,}}"
    ),
    # a line of a key that was printed line by line; digests are hexadecimal
    re.compile(
        r"(^(?:log\t\S+ )?(?:\d{4}-\d\d-\d\dT\S+ )?(?:std(?:out|err) [FP] )?)"
        r"(?![0-9a-f]+$)[A-Za-z0-9+/]{40,}={0,2}$"
    ),
)


def masker(secrets: Iterable[str] = ()) -> Callable[[str], str]:
    """What takes secrets out of a text. + secrets: their contents"""
    words = sorted({word for text in secrets for word in _words(text)}, key=len, reverse=True)
    exact = re.compile("|".join(map(re.escape, words))) if words else None

    def mask(text: str) -> str:
        if exact:
            text = exact.sub(HIDDEN, text)
        for look in _LOOKS:
            text = look.sub(rf"\1{HIDDEN}", text)
        return text

    return mask


def _words(text: str) -> Iterator[str]:
    for line in (text, *text.splitlines()):
        if len(line.strip()) >= _SHORTEST:
            yield line.strip()


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """A JSON value whose texts have gone through `mask`, and those that a secret's name holds."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {
            key: HIDDEN
            if isinstance(item, str) and item and _SECRET.search(key)
            else masked(item, mask)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [masked(item, mask) for item in value]
    return value


def known_secrets(settings: Any) -> Iterator[str]:
    """The contents of the secrets that settings name or hold, whatever section they are in."""
    if isinstance(settings, SecretStr):
        yield settings.get_secret_value()
    elif isinstance(settings, Secret):
        if settings.file:
            yield from _content(settings.file)
    elif isinstance(settings, BaseModel):
        for _, value in settings:
            yield from known_secrets(value)
    elif isinstance(settings, dict):
        for value in settings.values():
            yield from known_secrets(value)
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            yield from known_secrets(value)
    elif isinstance(settings, str) and "://" in settings and "@" in settings:
        yield from filter(None, [urlsplit(settings).password])


def _content(path: str) -> Iterator[str]:
    from pathlib import Path

    try:
        yield Path(path).expanduser().read_text()
    except (OSError, UnicodeDecodeError):  # nobody used it, then
        return
