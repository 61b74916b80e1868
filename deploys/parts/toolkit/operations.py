"""NVIDIA's container toolkit: who may choose the GPUs of a container."""

from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail
from deploys.engine.operation import operation
from deploys.parts.toolkit.fact import Toolkit, ToolkitState
from gpuboot.plan import Change, Unknown

PATH = "/etc/nvidia-container-runtime/config.toml"
# What an image or a pod's specification can ask for, whatever the pod was allotted. Privileged
# containers are served all the same; those with a request get their GPUs by CDI, from the kubelet.
_DISABLED_OPTIONS = {
    "accept-nvidia-visible-devices-envvar-when-unprivileged": "false",
    "accept-nvidia-visible-devices-as-volume-mounts": "false",
}


@operation()
def isolated(path: str = PATH) -> Commands:
    """Ensure only privileged containers choose GPUs themselves; all others get those allotted.

    Holds for the next container that starts: nothing is restarted, and running ones go on. The
    file is replaced at once, so that no container starts with half of it.

    + path: of the runtime's configuration
    """
    state = read(Toolkit, path=path)
    if problem := _problem(state, path):
        yield fail(*problem)
        return
    differing_values = {
        name: value for name, value in _DISABLED_OPTIONS.items() if state.accepts.get(name) != value
    }
    if not differing_values:
        host.noop("only privileged containers choose GPUs themselves")
        return
    changes.record(
        *[
            Change(subject=f"file {path}", field=name, old=state.accepts.get(name), new=value)
            for name, value in differing_values.items()
        ]
    )
    options = " ".join(f"--set {name}={value}" for name, value in differing_values.items())
    yield StringCommand(
        f"nvidia-ctk --quiet config --config-file={path} {options} --output={path}.new && "
        f"chmod 0644 {path}.new && mv {path}.new {path}"
    )


def _problem(state: ToolkitState, path: str) -> tuple[str, str] | None:
    """Cause and remedy where the configuration cannot be changed; None where it can."""
    if not state.installed:
        # while pyinfra prepares: an operation before this one will install it
        until = "NVIDIA's container toolkit is installed"
        changes.record(Unknown(what=f"file {path}", until=until))
        return "nvidia-ctk is not installed", "run the whole of deploys/site.py"
    if state.error:
        return (
            f"{path} is no configuration of NVIDIA's container toolkit: {state.error}",
            "correct it there, or move it away: this run makes it anew",
        )
    return None
