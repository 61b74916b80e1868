"""What every part of the settings model is made of."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True)
class Form:
    """What a text has to look like, told by an example instead of the regular expression.

    + pattern: of the whole text
    + description: what it is, with its article, as in `takes a duration, e.g. 15s`
    + longest: characters; 0: any number
    """

    pattern: str
    description: str
    example: str
    longest: int = 0

    def check(self, value: str) -> str:
        """The value. Raises ValueError, which says what is taken instead."""
        if not re.fullmatch(self.pattern, value):
            raise ValueError(f"takes {self.description}, e.g. {self.example}")
        if self.longest and len(value) > self.longest:
            raise ValueError(f"takes {self.description} of at most {self.longest} characters")
        return value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))


def _network(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value))
    except ValueError:
        raise ValueError("takes a network, e.g. 10.244.0.0/16") from None


_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_HOST = r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)"


def _address(value: str) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise ValueError("takes an IP address, e.g. 192.0.2.11") from None


Cidr = Annotated[str, AfterValidator(_network)]
Address = Annotated[str, AfterValidator(_address)]
Label = Annotated[
    str, Form(_LABEL, "a name of lower-case letters, digits and -", "gpu-cluster", 63)
]
Domain = Annotated[str, Form(_SUBDOMAIN, "a domain name in lower case", "cluster.local", 253)]
Url = Annotated[
    str, Form(r"https?://\S*[^/\s]", "an address without / at its end", "https://mirror.example")
]
RegistryHost = Annotated[
    str, Form(rf"{_HOST}(:\d{{1,5}})?", "a registry's host or host:port", "registry.example:5000")
]
Duration = Annotated[str, Form(r"\d+(ms|s|m|h|d|w|y)", "a duration", "15s")]
Path = Annotated[str, Form(r"/\S*[^/\s]", "an absolute path", "/var/lib/gpuboot/volumes")]
_MAIL = r"[^@\s<>]+@[^@\s<>]+"
Mail = Annotated[str, Form(rf"{_MAIL}|[^<>]*<{_MAIL}>", "an e-mail address", "ops@example.com")]
Size = Annotated[str, Form(r"\d+[KMGT]i", "a size", "50Gi")]
Port = Annotated[int, Field(ge=1, le=65535)]
NodePort = Annotated[int, Field(ge=30000, le=32767)]
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}


@dataclass(frozen=True)
class _HostPort(Form):
    """`host:port` with a port that there is."""

    def check(self, value: str) -> str:
        Form.check(self, value)
        if not 1 <= int(value.rpartition(":")[2]) <= 65535:
            raise ValueError(f"takes {self.description} from 1 to 65535, e.g. {self.example}")
        return value


def _host_port(example: str) -> Form:
    return _HostPort(rf"{_HOST}:\d{{1,5}}", "host:port", example)


Endpoint = Annotated[str, _host_port("api.example.com:6443")]
Smarthost = Annotated[str, _host_port("smtp.example.com:587")]
Target = Annotated[str, _host_port("192.0.2.50:9400")]


def _not_zero(value: str) -> str:
    if not seconds(value):
        raise ValueError("takes a duration longer than 0, e.g. 1m")
    return value


Period = Annotated[Duration, AfterValidator(_not_zero)]


def seconds(duration: str) -> float:
    """A `Duration` in seconds. Raises ValueError for anything else."""
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d|w|y)", duration)
    if match is None:
        raise ValueError(f"{duration!r} is no duration such as 15s")
    return int(match[1]) * _UNITS[match[2]]


def period(milliseconds: int) -> str:
    """Milliseconds as a `Duration`: in seconds where that is a whole number, as 15s or 1500ms."""
    return f"{milliseconds}ms" if milliseconds % 1000 else f"{milliseconds // 1000}s"


class Model(BaseModel):
    """Frozen, and strict about unknown keys: a typo is an error, never a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)
