"""What a kubelet runs with, beside what it is asked to run with.

It tells that itself (/configz): kubeadm's file, files of `--config-dir`, and flags over both. Flags
come from kubeadm's own file, and from files of the administrator's and drop-ins of its unit, which
`deploys/parts/node/boot.sh` reads.
Source: kubernetes.io, Set Kubelet Parameters Via A Configuration File.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_network
from typing import Any

import yaml

from gpuboot.cluster.manifests import YAML_LOADER
from gpuboot.config.tables import read_table
from gpuboot.hosts.boot import ConfigLine
from gpuboot.plan import Decision

FLAGS_FILE = "/var/lib/kubelet/kubeadm-flags.env"
_UNIT_FLAGS = r"(?<![\w-])--([a-z][a-z0-9-]*)"
_FLAG_WITH_VALUE = re.compile(_UNIT_FLAGS + r"(?:[= ](?![-$])[^\s\"']+)?")
# flags that kubeadm writes to its file, by version and by our configuration of it
_KUBEADM_FLAGS = frozenset(
    (
        *("node-ip", "hostname-override", "container-runtime-endpoint", "cgroup-driver"),
        *("pod-infra-container-image", "register-with-taints", "resolv-conf", "network-plugin"),
    )
)
_TABLE = read_table("cluster/kubelet_defaults.toml")
# fields whose default gpuboot relies on; a tuple: each of its values is right
_BOOLEANS = {"True": True, "False": False}
_OPTIONAL_PATHS = {path for paths in _TABLE["where_told"].values() for path in paths}
_DEFAULTS: Mapping[str, Any] = {
    **{
        path: _BOOLEANS.get(value, value)
        for section in ("defaults", "where_told")
        for value, paths in _TABLE[section].items()
        for path in paths
    },
    **_TABLE["other"],
    **{path: tuple(values) for path, values in _TABLE["one_of"].items()},
}
_FLAGS: Mapping[str, str] = {
    "authentication.anonymous.enabled": "anonymous-auth",
    "authentication.webhook.enabled": "authentication-token-webhook",
    "authentication.x509.clientCAFile": "client-ca-file",
    "authorization.mode": "authorization-mode",
    "podPidsLimit": "pod-max-pids",
    "registryPullQPS": "registry-qps",
    "staticPodPath": "pod-manifest-path",
    "reservedSystemCPUs": "reserved-cpus",
    "clusterDNS": "cluster-dns",
    "imageGCHighThresholdPercent": "image-gc-high-threshold",
    "imageGCLowThresholdPercent": "image-gc-low-threshold",
    "cpuCFSQuota": "cpu-cfs-quota",
    "eventRecordQPS": "event-qps",
    "kubeAPIBurst": "kube-api-burst",
    "kubeAPIQPS": "kube-api-qps",
    "logging.format": "logging-format",
    "logging.verbosity": "v",
    "logging.flushFrequency": "log-flush-frequency",
    "imageMinimumGCAge": "minimum-image-ttl-duration",
}
# flags by which every kubelet finds its configuration
_OWN_FLAGS = frozenset(("config", "config-dir", "kubeconfig", "bootstrap-kubeconfig"))
# a field whose default depends on another one
_FOLLOWERS = {
    "maxParallelImagePulls": "serializeImagePulls",
    "nodeStatusUpdateFrequency": "nodeStatusReportFrequency",
}
# fields that map names to values: what the kubelet has beside these was not asked for
_MAPS = frozenset(
    (
        *("evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"),
        *("kubeReserved", "systemReserved", "featureGates"),
    )
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def expected(config: str) -> dict[str, Any]:
    """Fields that a kubelet is to run with, by their dotted path.

    + config: kubeadm's configuration, all documents
    """
    documents = list(yaml.load_all(config, Loader=YAML_LOADER))
    configuration = next(item for item in documents if item["kind"] == "KubeletConfiguration")
    cluster = next(item for item in documents if item["kind"] == "ClusterConfiguration")
    fields = {
        name: value for name, value in configuration.items() if name not in ("kind", "apiVersion")
    }
    taints = [taint for item in documents for taint in _registered_taints(item)]
    services = ip_network(cluster["networking"]["serviceSubnet"].partition(",")[0])
    names = {
        "clusterDomain": cluster["networking"]["dnsDomain"],
        # kubeadm's choice (constants.GetDNSIP)
        "clusterDNS": [str(services[10])],
        # of a worker, by kubeadm's flag; a node that is there takes no notice of it
        "registerWithTaints": (None, taints) if taints else None,
    }
    decided_fields = {
        *fields,
        *(follower for name, follower in _FOLLOWERS.items() if name in fields),
    }
    own_defaults = {
        path: default
        for path, default in _DEFAULTS.items()
        if path.partition(".")[0] not in decided_fields
    }
    if fields.get("mergeDefaultEvictionSettings"):
        fields["evictionHard"] = {**_DEFAULTS["evictionHard"], **fields.get("evictionHard", {})}
    return {**own_defaults, **names, **fields}


def _registered_taints(document: Mapping[str, Any]) -> list[Any]:
    return (document.get("nodeRegistration") or {}).get("taints") or []


def overrides(
    running: Mapping[str, Any],
    desired: Mapping[str, Any],
    lines: Iterable[ConfigLine],
    pending: bool,
) -> list[Decision]:
    """What a kubelet runs with that it was not asked to run with.

    + running: `kubeletconfig` of its /configz
    + desired: as `expected` gives them
    + lines: of files that start the kubelet, less kubeadm's own
    + pending: a run will write kubeadm's files again, and restart it: what no file explains is that
    """
    sources = list(lines)
    decisions = []
    for path, value in desired.items():
        actual = _at(running, path)
        if actual is None and path in _OPTIONAL_PATHS:
            continue
        if _is_equal(value, actual, exact=path in _MAPS):
            continue
        source = _source(path, sources)
        if not source and pending:
            continue
        decisions.append(_override_decision(path, value, actual, source))
    known_flags = {*map(flag_of, desired), *_OWN_FLAGS}
    return decisions + [
        Decision(
            what=f"{line.place} gives the kubelet `{match[0]}` beside what gpuboot gives it",
            why=_removal(line),
        )
        for line in sources
        for match in _FLAG_WITH_VALUE.finditer(line.text)
        if match[1] not in known_flags
    ]


def stray_flags(text: str) -> list[str]:
    """Flags in kubeadm's own file that kubeadm does not write. + text: of `FLAGS_FILE`"""
    return [word for word in _words(text) if _name(word) not in _KUBEADM_FLAGS]


def without_stray_flags(text: str) -> str:
    """The file's text as kubeadm writes it."""
    words = [word for word in _words(text) if _name(word) in _KUBEADM_FLAGS]
    return f'KUBELET_KUBEADM_ARGS="{" ".join(words)}"'


def _words(text: str) -> list[str]:
    _, _, value = text.strip().partition("=")
    words: list[str] = []
    for word in value.strip("\"'").split():
        if word.startswith("-") or not words:
            words.append(word)
        else:  # the value of the flag before it
            words[-1] += f" {word}"
    return words


def _name(word: str) -> str:
    return re.split(r"[= ]", word.lstrip("-"), maxsplit=1)[0]


def _override_decision(path: str, value: Any, actual: Any, source: ConfigLine | None) -> Decision:
    choices = value if isinstance(value, tuple) else (value,)
    text = " or ".join("no value" if item in (None, "", []) else f"{item}" for item in choices)
    description = f"kubelet's {path} is {'not set' if actual is None else actual}, expected {text}"
    setting = path.partition(".")[0]
    adopt = f'set cluster.kubelet = {{"{setting}": …}} to keep it for all nodes'
    if source is None:
        return Decision(
            what=description,
            why="no file of its unit says so: it read its files before they were as they are; "
            "`systemctl restart kubelet` on the node (pods go on)",
        )
    return Decision(
        what=f"{description} (by {source.place}: `{source.text}`)",
        why=f"{_removal(source)}; or {adopt}",
    )


def _removal(line: ConfigLine) -> str:
    """How to undo a line of a file that starts the kubelet."""
    return (
        f"a file of the administrator's; take it out of {line.file}, then `systemctl "
        "daemon-reload` and `systemctl restart kubelet` (pods go on)"
    )


def flag_of(path: str) -> str:
    """The flag of a field, without its dashes."""
    return _FLAGS.get(path) or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", path).lower()


def _source(path: str, lines: Sequence[ConfigLine]) -> ConfigLine | None:
    """The line that sets a field: the last one that has its flag, else another configuration."""
    for name in (flag_of(path), "config-dir", "config"):
        for line in reversed(lines):
            if name in re.findall(_UNIT_FLAGS, line.text):
                return line
    return None


def _at(item: Mapping[str, Any], path: str) -> Any:
    value: Any = item
    if path in item:
        return item[path]
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _unset(value: Any) -> bool:
    return value in (None, "", 0, False) or value == [] or value == {}


def _is_equal(desired: Any, actual: Any, exact: bool = False) -> bool:
    if isinstance(desired, tuple):
        return any(_is_equal(choice, actual, exact) for choice in desired)
    if isinstance(desired, list) and isinstance(actual, list) and len(desired) == len(actual):
        return all(map(_is_equal, desired, actual))
    if isinstance(desired, Mapping) and isinstance(actual, Mapping):
        names = {*desired, *(actual if exact else ())}
        return all(_is_equal(desired.get(name), actual.get(name)) for name in names)
    if desired == actual or (_unset(desired) and _unset(actual)):
        return True
    if isinstance(desired, str) and isinstance(actual, str):
        return _seconds(desired) == _seconds(actual) is not None
    return str(desired) == str(actual)


def _seconds(text: str) -> float | None:
    parts = _DURATION.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
