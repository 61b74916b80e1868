"""NetworkManager, which takes what it does not know for its own, leaves the pod network alone."""

from pyinfra.api.command import StringCommand

from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.files import operations as files

FILE = "/etc/NetworkManager/conf.d/gpuboot.conf"
# A section of its own: `unmanaged-devices` would replace what another file says there, and Ubuntu's
# 10-globally-managed-devices.conf says that it manages no Ethernet (NetworkManager.conf(5), DEVICE
# SECTION). RKE2's documentation, "Known Issues", asks for the same of its pod networks
TEXT = """\
# Written by gpuboot: devices of the pod network are not its own
[device-gpuboot]
match-device=interface-name:cni0;interface-name:flannel*;interface-name:veth*
managed=0
"""


@operation()
def pod_network_unmanaged() -> Commands:
    """Ensure NetworkManager does not manage devices of the pod network, now or after a boot."""
    changed = False
    for command in files.present._inner({FILE: TEXT}):
        changed = True
        yield command
    if changed:
        yield StringCommand("systemctl reload NetworkManager")
