"""How a host itself resolves a name beyond the cluster."""

import shlex

from deploys.engine.framed import Framed

_IN_FILE = "'$0 !~ /^[ \\t]*#/ { for (i = 2; i <= NF; i++) if ($i == name) exit 1 }'"
_SECONDS = 10


class OutsideName(Framed[str]):
    """`hosts-file`, `resolved` or `unresolved`."""

    default = str

    def command(self, domain: str) -> str:
        quoted = shlex.quote(domain)
        return (
            f"if ! awk -v name={quoted} {_IN_FILE} /etc/hosts; then echo hosts-file; "
            f"elif timeout -k 2 {_SECONDS} getent ahosts {quoted} >/dev/null 2>&1; "
            "then echo resolved; else echo unresolved; fi"
        )

    def process(self, output: list[str]) -> str:
        [word] = output
        return word
