"""Secrets in the cluster: what is there is compared by digest, and travels by standard input."""

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence

from pydantic import SecretStr
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing, fail
from deploys.engine.operation import operation
from deploys.parts.cluster.kubectl import KUBECTL, KUBECTL_APPLY
from deploys.parts.cluster.secrets_fact import SecretDigests
from gpuboot.plan import Change

Value = SecretStr | str  # a SecretStr hides itself wherever arguments are printed


@operation()
def synced(namespace: str, secret: str, contents: Mapping[str, Value]) -> Commands:
    """Ensure that a Secret holds exactly these keys and values; {}: that it is not there.

    A pod that has it mounted sees the new values within the kubelet's sync period (a minute or so):
    a program that reads its files when it needs them is not restarted.

    + contents: key -> value; shown nowhere, and not written to the host's disk
    """
    existing = read(SecretDigests, namespace=namespace, secret=secret)
    if existing == digests(contents):
        host.noop(f"secret {secret} {'is up to date' if existing else 'does not exist'}")
        return
    subject = f"Secret {namespace}/{secret}"
    new = digests(contents)
    changes.record(*[
        Change(subject=subject, field=key, old=existing.get(key), new=new.get(key), hidden=True)
        for key in sorted({*existing, *new})
        if existing.get(key) != new.get(key)
    ])  # fmt: skip
    if not contents:
        yield StringCommand(
            KUBECTL, "-n", QuoteString(namespace), "delete secret --ignore-not-found",
            QuoteString(secret),
        )  # fmt: skip
        return
    obsolete_keys = sorted(existing.keys() - contents.keys())
    if obsolete_keys:
        # applying takes away only the keys that we put there
        patch = json.dumps({"data": dict.fromkeys(obsolete_keys)})
        yield StringCommand(
            KUBECTL, "-n", QuoteString(namespace), "patch secret", QuoteString(secret),
            "--type merge --patch", QuoteString(patch),
        )  # fmt: skip
    if any(existing.get(key) != digest for key, digest in digests(contents).items()):
        yield StringCommand(KUBECTL_APPLY, "-", _stdin=manifest(namespace, secret, contents))


@operation()
def admin_login(namespace: str, secret: str, password: Value | None = None) -> Commands:
    """Ensure a Secret with `admin-user` and `admin-password`.

    A password is made on the leader when none is given, and one that is there stays.

    + password: what it must be; None: any
    """
    if password is not None:
        yield from synced._inner(
            namespace, secret, {"admin-user": "admin", "admin-password": password}
        )
        return
    if "admin-password" in read(SecretDigests, namespace=namespace, secret=secret):
        host.noop(f"secret {secret} exists")
        return
    subject = f"Secret {namespace}/{secret}"
    changes.record(Change(subject=subject, field="admin-password", new="random", hidden=True))
    yield StringCommand(
        "head -c 18 /dev/urandom | base64 | tr -d '\\n' |",
        f"{KUBECTL} -n {shlex.quote(namespace)} create secret generic {shlex.quote(secret)}"
        " --from-literal=admin-user=admin --from-file=admin-password=/dev/stdin"
        f" --dry-run=client -o yaml | {KUBECTL_APPLY} -",
    )


@operation()
def required(namespace: str, needed: Mapping[str, Sequence[str]]) -> Commands:
    """Make sure of Secrets that others keep; changes nothing.

    A pod that mounts a Secret which is missing waits for it without an end.

    + needed: Secret -> keys that must be in it
    """
    missing = []
    for secret, keys in needed.items():
        existing = read(SecretDigests, namespace=namespace, secret=secret)
        missing += [f"{secret}/{key}" for key in keys if key not in existing]
    if missing and executing():
        yield fail(
            f"Secrets that settings name are not in namespace {namespace}: {', '.join(missing)}",
            f"make them (kubectl -n {namespace} create secret generic NAME --from-file=KEY=FILE), "
            "then run again",
        )
        return
    host.noop(
        "the site's Secrets exist" if not missing else "they are looked for when the run gets there"
    )


def digests(contents: Mapping[str, Value]) -> dict[str, str]:
    """Key -> SHA-256 of each value, as the fact `SecretDigests` has them."""
    return {key: hashlib.sha256(_bytes(value)).hexdigest() for key, value in contents.items()}


def manifest(namespace: str, secret: str, contents: Mapping[str, Value]) -> str:
    """The Secret as JSON. It must go nowhere but to kubectl's standard input."""
    data = {key: base64.b64encode(_bytes(value)).decode() for key, value in contents.items()}
    meta = {
        "name": secret,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/managed-by": "gpuboot"},
    }
    item = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data}
    return json.dumps(item, sort_keys=True)


def _bytes(value: Value) -> bytes:
    return (value.get_secret_value() if isinstance(value, SecretStr) else value).encode()
