"""containerd's configuration: one owner, put in place only when right and only when different."""

from dataclasses import dataclass

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail, inform, shell_message, warn
from deploys.engine.operation import operation
from deploys.parts.containerd.fact import Cdi, Containerd, ContainerdState
from deploys.parts.files.fact import FileTexts
from deploys.parts.files.operations import write
from gpuboot.cluster import backup
from gpuboot.plan import Change, Effect, Unknown
from gpuboot.plan.differences import text_change

ROOT = "/etc/containerd/config.toml"
PATHS = {
    "config": ROOT,
    "nvidia": "/etc/containerd/conf.d/99-nvidia.toml",
    "proxy": "/etc/systemd/system/containerd.service.d/gpuboot-proxy.conf",
}
CDI_SPEC = "/var/run/cdi/nvidia.yaml"
_STATE_FOLDER = "/var/lib/gpuboot/containerd"
_PREVIOUS = f"{_STATE_FOLDER}/previous"
_WAIT_S = 60
# containerd answers and its CRI plugin is in order
_CRI_READY = (
    "ctr --connect-timeout 5s plugins ls 2>/dev/null | "
    'awk \'$1 ~ /grpc/ && $2 == "cri" { ok = $NF == "ok" } END { exit !ok }\''
)
_ANSWERS = "ctr --connect-timeout 5s version >/dev/null 2>&1"


@dataclass(frozen=True)
class Configuration:
    """What `configured` takes."""

    root: str
    toolkit: str = "none"
    proxy: str = ""


@operation()
def configured(root: str, toolkit: str = "none", proxy: str = "") -> Commands:
    """Ensure containerd runs with this configuration; restarts it only when something differs.

    The outcome of NVIDIA's toolkit is worked out on a copy. containerd must accept it before
    anything is put in place, and when the restart fails the files from before come back.

    + root: text of /etc/containerd/config.toml, with @VERSION@ for the configuration version
    + toolkit: options of `nvidia-ctk runtime configure`, or `none` to leave the runtime out
    + proxy: text of a drop-in for containerd's unit; "" for none
    """
    state = read(Containerd, root=root, proxy=proxy, toolkit=toolkit)
    if problem := _problem(state):
        yield fail(*problem)
        return
    if not state.differs and not state.stale:
        host.noop("containerd runs with its configuration")
        return
    _report_foreign(state)
    _record(state)
    yield StringCommand(
        f"set -e; rm -rf {_PREVIOUS}; mkdir -p -m 0700 {_PREVIOUS};",
        *[f"test ! -f {path} || cp -a {path} {_PREVIOUS}/{name};" for name, path in PATHS.items()],
    )
    if state.edited and "config" in state.differs:
        yield StringCommand(f"cp -a {ROOT} {ROOT}.before-gpuboot")
    for name in state.differs:
        if state.expected[name]:
            yield write(PATHS[name], state.expected[name])
        else:
            yield StringCommand("rm -f", PATHS[name])
    yield _restart()
    yield StringCommand(f"cp {ROOT} {_STATE_FOLDER}/config.toml")


def _problem(state: ContainerdState) -> tuple[str, str] | None:
    """Cause and remedy where containerd cannot have this configuration; None where it can."""
    if state.absent:
        # while pyinfra prepares: an operation before this one will install it
        until = f"{state.absent} is installed"
        changes.record(Unknown(what="containerd's configuration", until=until))
        return f"{state.absent} is not installed", "run the whole of deploys/site.py"
    if state.error or (state.version.isdigit() and int(state.version) < 3):
        reason = state.error or f"its configuration version is {state.version}, 3 is the least"
        return (
            f"containerd does not accept its new configuration: {reason}",
            f"correct {', '.join(state.foreign) or 'the versions asked for'}; nothing was changed",
        )
    return None


def _record(state: ContainerdState) -> None:
    paths = {PATHS[name]: state.expected[name] for name in state.differs}
    texts = read(FileTexts, paths=list(paths)) if paths else {}
    changes.record(
        *[
            text_change(f"file {path}", texts.get(path), text or None)
            for path, text in paths.items()
        ],
        *[
            Change(subject="containerd", field="running configuration", old=reason, new="its files")
            for reason in state.stale
        ],
        Effect(kind="restart", target="containerd", local=True, note="running containers go on"),
    )


def restarted() -> StringCommand:
    """Restart containerd, for who has installed another one, and wait until pods can be started."""
    failed = shell_message(
        "containerd does not answer after its upgrade", "see `journalctl -u containerd`"
    )
    show_log = "journalctl -n 15 --no-pager -u containerd.service >&2;"
    return StringCommand(f"{_restarted(_CRI_READY)} || {{ {show_log}", failed, "; exit 1; }")


def _restart() -> StringCommand:
    failed = shell_message(
        "containerd did not start with its new configuration; the files from before are back and "
        "it was started with them",
        "see its messages above, correct the settings, then run again",
    )
    back = " ".join(
        f"rm -f {path}; test ! -f {_PREVIOUS}/{name} || cp -a {_PREVIOUS}/{name} {path};"
        for name, path in PATHS.items()
    )
    return StringCommand(
        f"{_restarted(_CRI_READY)} || {{ journalctl -n 15 --no-pager -u containerd.service >&2; "
        f"{back} {_restarted(_ANSWERS)} || "
        "echo 'containerd does not start with the old files either' >&2;",
        failed,
        "; exit 1; }",
    )


def _restarted(ready: str) -> str:
    """Restarts containerd and succeeds once the command `ready` does; in a subshell of its own."""
    return (
        f"(systemctl daemon-reload && {backup.ENDS} && systemctl restart containerd.service && "
        f"for i in $(seq {_WAIT_S}); do {ready} && exit 0; sleep 1; done; exit 1)"
    )


def _report_foreign(state: ContainerdState) -> None:
    if state.edited and "config" in state.differs:
        edited = " | ".join(line.strip() for line in state.edited[:20])
        warn(
            f"{ROOT} has settings that gpuboot did not write; they are kept in "
            f"{ROOT}.before-gpuboot, but no longer hold (put yours into /etc/containerd/conf.d/): "
            f"{edited}"
        )
    if state.foreign:
        inform(f"these stay in force: {', '.join(state.foreign)}")


@operation()
def cdi(path: str = CDI_SPEC) -> Commands:
    """Ensure the CDI specification names the GPUs and libraries that are there now.

    + path: the specification's file
    """
    state = read(Cdi, path=path)
    if state.current:
        host.noop("the CDI specification is up to date")
        return
    subject = f"CDI specification {path}"
    if not state.installed:
        until = "NVIDIA's container toolkit is installed"
        changes.record(Unknown(what=subject, until=until))
    elif not state.error:
        changes.record(
            Change(
                subject=subject,
                old="not of these GPUs and libraries",
                new="of those that are there",
            )
        )
    if state.error:
        yield fail(
            f"nvidia-ctk cannot describe the GPUs: {state.error}", "run `nvidia-smi` there first"
        )
        return
    yield StringCommand("nvidia-ctk cdi generate --output", QuoteString(path))
