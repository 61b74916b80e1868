"""Settings of the kernel that Kubernetes needs, and who else sets them at boot.

systemd-sysctl reads the files of sysctl.d by the order of their names, and sets each key to what
the last file says (systemd, src/sysctl/sysctl.c). A key with a glob sets what no file names. ufw
sets those of its own file after that.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import basename

from gpuboot.hosts.boot import ConfigLine

# the least that is right: a larger value of somebody else stays
EXPECTED = {
    "net.ipv4.ip_forward": "1",
    "net.bridge.bridge-nf-call-iptables": "1",
    "net.bridge.bridge-nf-call-ip6tables": "1",
    # many pods tail many files; the kernel's 128 instances are gone at about 100 containers
    "fs.inotify.max_user_instances": "8192",
    "fs.inotify.max_user_watches": "524288",
}
FILE = "/etc/sysctl.d/99-zz-gpuboot.conf"  # behind 99-sysctl.conf, which is /etc/sysctl.conf
FORMER_FILE = "/etc/sysctl.d/90-gpuboot.conf"
# the kernel has one variable for both (net/ipv4/devinet.c)
_SYNONYMS = {"net.ipv4.conf.all.forwarding": "net.ipv4.ip_forward"}


@dataclass(frozen=True)
class _Assignment:
    key: str
    value: str
    line: ConfigLine


def expected(lines: Iterable[ConfigLine]) -> dict[str, str]:
    """Our settings for a host: ours, or the larger value that its own files set.

    + lines: assignments of its files, as `BootState.sysctls` has them
    """
    foreign_values = _at_boot(_foreign_lines(lines))
    return {
        key: item.value
        if (item := foreign_values.get(key)) and is_enough(item.value, value)
        else value
        for key, value in EXPECTED.items()
    }


def is_enough(value: str | None, minimum: str) -> bool:
    """Whether a setting's value is as large as it has to be."""
    return value is not None and value.isdigit() and int(value) >= int(minimum)


def overriding(lines: Iterable[ConfigLine]) -> Iterator[tuple[str, ConfigLine]]:
    """Each of our keys that is too small after a boot although our file is there, and the line."""
    for key, item in _at_boot(_with_ours(_foreign_lines(lines))).items():
        if key in EXPECTED and not is_enough(item.value, EXPECTED[key]):
            yield key, item.line


def overridden(lines: Iterable[ConfigLine]) -> Iterator[tuple[str, ConfigLine]]:
    """Each of our keys that the host's own files make too small, and our file puts right."""
    foreign_lines = _foreign_lines(lines)
    stronger = dict(overriding(foreign_lines))
    for key, item in _at_boot(foreign_lines).items():
        if key in EXPECTED and key not in stronger and not is_enough(item.value, EXPECTED[key]):
            yield key, item.line


def _foreign_lines(lines: Iterable[ConfigLine]) -> list[ConfigLine]:
    return [line for line in lines if line.file not in (FILE, FORMER_FILE)]


def _with_ours(lines: list[ConfigLine]) -> list[ConfigLine]:
    """The lines, with those of our file in their place among the files of sysctl.d."""
    own_lines = [ConfigLine(FILE, 0, f"{key} = {value}") for key, value in expected(lines).items()]
    before = [line for line in lines if not _is_behind(line.file)]
    return [*before, *own_lines, *(line for line in lines if _is_behind(line.file))]


def _is_behind(file: str) -> bool:
    return "sysctl.d/" not in file or basename(file) > basename(FILE)


def _at_boot(lines: Iterable[ConfigLine]) -> Mapping[str, _Assignment]:
    """What is in force after all files, by our names of the keys.

    Like systemd-sysctl: a key that gets the value that it has keeps its place in the order.
    """
    ordered: dict[str, _Assignment] = {}
    for item in filter(None, map(_parsed, lines)):
        if item.key in ordered and ordered[item.key].value == item.value:
            continue
        ordered.pop(item.key, None)
        ordered[item.key] = item
    result = {}
    for item in ordered.values():
        for key in (*EXPECTED, *_SYNONYMS):
            if item.key == key or (key not in ordered and _matches(key, item.key)):
                result[_SYNONYMS.get(key, key)] = item
    return result


def _matches(key: str, pattern: str) -> bool:
    parts, globs = key.split("."), pattern.split(".")
    return len(parts) == len(globs) and all(map(fnmatchcase, parts, globs))


def _parsed(line: ConfigLine) -> _Assignment | None:
    """The assignment of a line; None for a key without a value, which keeps it out of globs."""
    key, equals, value = line.text.partition("=")
    key = key.strip().removeprefix("-").strip()
    first = next((char for char in key if char in "./"), ".")
    if first == "/":  # then a dot is part of a name
        key = key.translate(str.maketrans("/.", "./"))
    return _Assignment(key, value.strip(), line) if equals else None
