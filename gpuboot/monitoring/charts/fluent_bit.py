"""Fluent Bit's configuration: what it reads, what it makes of it, and how it is sent to Loki.

Keys and defaults are of Fluent Bit 5.1 (its manual, and `config_map` of each plugin's source). In
this format, "classic mode", a value ends with its line. Secrets come from the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from gpuboot.config.settings import Settings
from gpuboot.config.settings.logs import Loki
from gpuboot.monitoring.rules import xid_lines

# On the node: how far each file has been read, so that a restart neither loses nor repeats.
STATE = "/var/lib/gpuboot/fluent-bit"
CA = "/fluent-bit/gpuboot/ca.crt"
# parser's name -> its expression
PARSERS = {
    f"gpuboot_{name}": f"^{pattern}".replace("(?P<", "(?<")
    for name, pattern in (("xid", xid_lines.XID), ("sxid", xid_lines.SXID))
}
_KEYS = dict.fromkeys(re.findall(r"P<(\w+)>", xid_lines.XID + xid_lines.SXID))
Section = tuple[str, tuple[tuple[str, str], ...]]
# labels make streams, and each stream costs Loki: nothing that is another one with each GPU or line
_PODS_LABELS = (
    "job=pods, node=${NODE_NAME}, namespace=$kubernetes['namespace_name'], "
    "pod=$kubernetes['pod_name'], container=$kubernetes['container_name']"
)
_XIDS_LABELS = "job=kernel, node=${NODE_NAME}"
_EVENTS_LABELS = "job=events, namespace=$involvedObject['namespace']"
_OF_EVENTS = (
    *("involvedObject", "reason", "message", "type", "count", "source", "reportingComponent"),
    *("firstTimestamp", "lastTimestamp"),
)

_CONTAINERS = (
    ("Name", "tail"),
    ("Tag", "kube.*"),
    ("Path", "/var/log/containers/*.log"),
    ("Refresh_Interval", "10"),  # seconds, in which a new file is found
    ("multiline.parser", "cri"),
    ("DB", f"{STATE}/pods.db"),
    ("DB.locking", "On"),
    ("Mem_Buf_Limit", "16MB"),
    ("Skip_Long_Lines", "On"),
)
# names from the file's name: the API server is not asked
_NAMES = (
    ("Name", "kubernetes"),
    ("Match", "kube.*"),
    ("Use_Tag_For_Meta", "On"),
    ("Labels", "Off"),
    ("Annotations", "Off"),
)
# Nothing but `log` is left of a record, which is sent as the program wrote it.
_AS_WRITTEN = (
    ("Labels", _PODS_LABELS),
    ("Remove_Keys", "kubernetes, stream, time, _p"),
    ("Line_Format", "json"),
    ("Drop_Single_Key", "raw"),
)
_KERNEL = (
    ("Name", "systemd"),
    ("Tag", "kernel"),
    ("Systemd_Filter", "_TRANSPORT=kernel"),
    ("DB", f"{STATE}/kernel.db"),
    ("Read_From_Tail", "On"),
)
# one filter after the other
_OF_KERNEL = (
    (
        ("Name", "grep"),
        ("Match", "kernel"),
        ("Regex", r"MESSAGE ^(NVRM: Xid|nvidia-nvswitch\d+: SXid) \("),
    ),
    (
        ("Name", "parser"),
        ("Match", "kernel"),
        ("Key_Name", "MESSAGE"),
        *(("Parser", name) for name in PARSERS),
        ("Preserve_Key", "On"),
        ("Reserve_Data", "On"),
    ),
    (
        ("Name", "record_modifier"),
        ("Match", "kernel"),
        *(("Allowlist_key", key) for key in ("MESSAGE", *_KEYS)),
    ),
    (
        ("Name", "modify"),
        ("Match", "kernel"),
        ("Rename", "MESSAGE message"),
        ("Set", "node ${NODE_NAME}"),
    ),
)


def nodes_config(settings: Settings, release: str) -> dict[str, str]:
    """The chart's value `config` for the pod on every node.

    + release: of the pods whose own logs are left out, or an error would make more of itself
    """
    sections = [
        *(_pods(settings, release) if settings.logs.pods else ()),
        *_xids(settings),
    ]
    types = ("Types", "xid:integer sxid:integer")
    parsers: list[Section] = [
        ("PARSER", (("Name", name), ("Format", "regex"), ("Regex", regex), types))
        for name, regex in PARSERS.items()
    ]
    return {**_parts(sections), "customParsers": _text(parsers)}


def events_config(settings: Settings) -> dict[str, str]:
    """The chart's value `config` for the one pod that watches Events."""
    sections: list[Section] = [
        ("INPUT", (("Name", "kubernetes_events"), ("Tag", "events"))),
        (
            "FILTER",
            (
                ("Name", "record_modifier"),
                ("Match", "events"),
                *(("Allowlist_key", key) for key in _OF_EVENTS),
            ),
        ),
        _output(settings, "events", (("Labels", _EVENTS_LABELS), ("Line_Format", "json"))),
    ]
    return {**_parts(sections), "customParsers": ""}


def _pods(settings: Settings, release: str) -> Iterable[Section]:
    left_out = [
        f"/var/log/containers/{release}-*_{settings.monitoring.namespace}_*.log",
        *(f"/var/log/containers/*_{name}_*.log" for name in settings.logs.exclude_namespaces),
    ]
    yield ("INPUT", (*_CONTAINERS, ("Exclude_Path", ",".join(left_out))))
    yield ("FILTER", _NAMES)
    yield _output(settings, "kube.*", _AS_WRITTEN)


def _xids(settings: Settings) -> Iterable[Section]:
    yield ("INPUT", _KERNEL)
    for entries in _OF_KERNEL:
        yield ("FILTER", entries)
    yield _output(settings, "kernel", (("Labels", _XIDS_LABELS), ("Line_Format", "json")))


def _output(settings: Settings, match: str, options: tuple[tuple[str, str], ...]) -> Section:
    assert settings.logs.loki
    to = destination(settings.logs.loki)
    # Outputs of one thread share what they remove of a record (`thread_local_remove_mpa` of
    # plugins/out_loki/loki.c): each has a thread of its own.
    thread = (("Workers", "1"),)
    return ("OUTPUT", (("Name", "loki"), ("Match", match), *thread, *to.items(), *options))


def destination(loki: Loki) -> Mapping[str, str]:
    """How Loki is reached. What it is tried for is kept in memory until it can be sent."""
    parts = urlsplit(loki.url)
    tls = parts.scheme == "https"
    options = {
        "Host": parts.hostname or "",
        "Port": str(parts.port or (443 if tls else 80)),
        "Uri": f"{parts.path.rstrip('/')}/loki/api/v1/push",
        "Tls": "On" if tls else "Off",
        "Retry_Limit": "no_limits",
    }
    if tls:
        options["Tls.verify"] = "On"
    if loki.ca:
        options["Tls.ca_file"] = CA
    if loki.tenant:
        options["Tenant_ID"] = loki.tenant
    if loki.username:
        options |= {"Http_User": loki.username, "Http_Passwd": "${LOKI_PASSWORD}"}
    if loki.bearer_token:
        options["Bearer_Token"] = "${LOKI_TOKEN}"
    return options


def _parts(sections: Iterable[Section]) -> dict[str, str]:
    kinds = {"INPUT": "inputs", "FILTER": "filters", "OUTPUT": "outputs"}
    all_sections = list(sections)
    return {
        key: _text(section for section in all_sections if section[0] == kind)
        for kind, key in kinds.items()
    }


def _text(sections: Iterable[Section]) -> str:
    """Sections in Fluent Bit's classic format; what Helm's `tpl` would evaluate is kept from it."""
    lines = []
    for kind, entries in sections:
        lines += [f"[{kind}]", *(f"    {key} {value}" for key, value in entries), ""]
    return "\n".join(lines).replace("{{", '{{"{{"}}')
