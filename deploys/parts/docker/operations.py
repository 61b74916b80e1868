"""dockerd's configuration: checked before it is put in place, and taken back if it does not run."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail, shell_message
from deploys.engine.operation import operation
from deploys.parts.docker.fact import Docker, DockerState, UntrustedMirrors
from deploys.parts.files.operations import write
from gpuboot.docker import daemon
from gpuboot.plan import Change, Effect, Unknown
from gpuboot.plan.differences import value_changes
from gpuboot.plan.model import EffectKind

PATH = "/etc/docker/daemon.json"
RUNTIME = "nvidia"
_TRIAL = "/etc/docker/daemon.json.gpuboot-trial"
_PREVIOUS = "/var/lib/gpuboot/docker/daemon.json"
_WAIT_S = 60
# with the flags of its unit: what stands there and in the file as well is an error too
_VALIDATE = (
    "$(systemctl show -p ExecStart --value docker.service | "
    "sed -n 's/.* argv\\[\\]=\\([^;]*[^; ]\\) *;.*/\\1/p' | head -n 1) --validate --config-file"
)


@operation()
def configured(toolkit: bool, proxied: bool = False) -> Commands:
    """Ensure dockerd runs with this configuration, keeping whatever else a site has in it.

    A running dockerd takes the change over without a restart where it can. When it does not
    answer afterwards the file from before comes back.

    + toolkit: NVIDIA's runtime is registered, and the default one
    + proxied: its unit gives it the site's proxy
    """
    state = read(Docker, toolkit=toolkit)
    if problem := _problem(state):
        yield fail(*problem)
        return
    present = daemon.parse(state.present)
    new = daemon.configuration(present, daemon.parse(state.toolkit), proxied, state.swarm)
    runs = bool(state.version) and (not toolkit or state.default_runtime == RUNTIME)
    if new == present and runs and not state.stale:
        host.noop("dockerd runs with its configuration")
        return
    restart = not state.version or state.stale or daemon.needs_restart(present, new)
    _record(present, new, restart)
    if new != present:
        yield from _replaced(daemon.render(new))
    if state.version and restart and new.get("live-restore") and not present.get("live-restore"):
        # so that containers survive this very restart
        yield StringCommand("systemctl reload docker.service && sleep 2")
    yield _applied(restart, toolkit, changed=new != present)


def _problem(state: DockerState) -> tuple[str, str] | None:
    """Cause and remedy where dockerd cannot be configured; None where it can."""
    if state.absent:
        # while pyinfra prepares: an operation before this one will install it
        names = ", ".join(state.absent)
        changes.record(Unknown(what="dockerd's configuration", until=f"{names} is installed"))
        return f"{names} is not installed", "run the whole of deploys/standalone.py"
    if state.error:
        return f"nvidia-ctk cannot change {PATH}: {state.error}", f"correct {PATH} there"
    try:
        daemon.parse(state.present)
    except ValueError as error:
        return f"{PATH} is no JSON ({error})", "correct it there; nothing was changed"
    return None


def _record(present: Mapping[str, Any], new: Mapping[str, Any], restart: bool) -> None:
    live = bool(present.get("live-restore") or new.get("live-restore"))
    keeps_running = live or not restart
    note = "containers go on" if keeps_running else "all of its containers stop and start"
    kind: EffectKind = "restart" if restart else "reload"
    changes.record(
        *value_changes(f"file {PATH}", present, new),
        Effect(kind=kind, target="dockerd", local=True, note=note),
    )


def _replaced(text: str) -> Commands:
    """Put a configuration in the place of the present one once dockerd accepts it."""
    yield write(_TRIAL, text)
    yield StringCommand(
        f"{_VALIDATE} {_TRIAL} >/dev/null || {{ rm -f {_TRIAL};",
        shell_message(
            "dockerd does not accept the configuration, nothing was changed", f"see {PATH}"
        ),
        "; exit 1; }",
    )
    yield StringCommand(
        "mkdir -p -m 0700 /var/lib/gpuboot/docker && "
        f"rm -f {_PREVIOUS} && {{ test ! -f {PATH} || cp -a {PATH} {_PREVIOUS}; }} "
        f"&& mv {_TRIAL} {PATH}"
    )


def _applied(restart: bool, toolkit: bool, changed: bool) -> StringCommand:
    ready = "docker info >/dev/null 2>&1"
    if toolkit:
        ready = (
            f"test \"$(docker info --format '{{{{.DefaultRuntime}}}}' 2>/dev/null)\" = {RUNTIME}"
        )
    # the sockets of a unit that failed too often have to be reset before it starts again
    start = (
        "systemctl daemon-reload; systemctl reset-failed docker.service docker.socket; "
        "systemctl restart docker.service"
    )
    first = start if restart else f"systemctl reload docker.service || {{ {start}; }}"
    back = (
        f"{{ rm -f {PATH}; test ! -f {_PREVIOUS} || cp -a {_PREVIOUS} {PATH}; }}; {start};"
        if changed
        else ""
    )
    return StringCommand(
        f"({first}; for i in $(seq {_WAIT_S}); do {ready} && exit 0; sleep 1; done; exit 1) || "
        f"{{ journalctl -n 15 --no-pager -u docker.service >&2; {back}",
        shell_message(
            "dockerd does not run with its configuration"
            + ("; the file from before is back and it was started with it" if changed else ""),
            f"see its messages above, correct {PATH} or the settings",
        ),
        "; exit 1; }",
    )


@operation()
def mirrors_trusted(hosts: Sequence[str], ca_bundle: str) -> Commands:
    """Ensure Docker trusts registries whose certificates a site's authority has signed.

    + hosts: `host[:port]` of the registries
    + ca_bundle: PEM file on the host
    """
    missing = read(UntrustedMirrors, hosts=list(hosts), ca_bundle=ca_bundle)
    changes.record(*[
        Change(subject=f"file /etc/docker/certs.d/{name}/ca.crt", new=f"as {ca_bundle}")
        for name in missing
    ])  # fmt: skip
    if not missing:
        host.noop(f"Docker trusts {', '.join(hosts)}")
    for name in missing:
        folder = f"/etc/docker/certs.d/{name}"
        yield StringCommand(
            "install -D -m 0644", QuoteString(ca_bundle), QuoteString(f"{folder}/ca.crt")
        )
