"""Secrets of the cluster, without reading them out. On the leader."""

from __future__ import annotations

import shlex

from typing_extensions import override

from deploys.facts.framed import Framed
from deploys.lib.kubectl import ADMIN_CONF, KUBECTL

_CAN_ASK = f"[ -r {ADMIN_CONF} ] && command -v kubectl >/dev/null"
_KEYS = '{{range $key, $value := .data}}{{$key}} {{$value}}{{"\\n"}}{{end}}'


class SecretDigests(Framed[dict[str, str]]):
    """Key -> SHA-256 of each value of a Secret; {} when there is no such Secret, or no cluster.

    The values stay on the host, and in the shell: no process has one as an argument.
    """

    of_cluster = True

    default = dict

    @override
    def command(self, namespace: str, secret: str) -> str:
        get = (
            f"{KUBECTL} -n {shlex.quote(namespace)} get secret"
            f" {shlex.quote(secret)} --ignore-not-found -o {shlex.quote(f'go-template={_KEYS}')}"
        )
        return (
            f"if {_CAN_ASK}; then values=$({get}) || exit 1;"
            ' printf %s "$values" | while read -r key value || [ -n "$key" ]; do'
            ' printf "%s %s\\n" "$key"'
            ' "$(printf %s "$value" | base64 -d | sha256sum | cut -c 1-64)"; done; fi'
        )

    @override
    def process(self, output: list[str]) -> dict[str, str]:
        return dict(line.split() for line in output if line.strip())
