"""Secrets that gpuboot made, without reading them out."""

from __future__ import annotations

import shlex

from typing_extensions import override

from deploys.facts.text import OneLine


class AdminSecret(OneLine):
    """SHA-256 of `admin-password` in a Secret; "" when there is no such Secret or cluster."""

    @override
    def command(self, namespace: str, secret: str) -> str:
        get = (
            "kubectl --kubeconfig /etc/kubernetes/admin.conf"
            f" -n {shlex.quote(namespace)} get secret {shlex.quote(secret)} --ignore-not-found"
            " -o 'jsonpath={.data.admin-password}'"
        )
        return (
            "if [ -r /etc/kubernetes/admin.conf ] && command -v kubectl >/dev/null;"
            f' then value=$({get}); if [ -n "$value" ];'
            ' then printf %s "$value" | base64 -d | sha256sum | cut -c 1-64; fi; fi'
        )
