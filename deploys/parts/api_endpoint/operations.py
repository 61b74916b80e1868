"""How a host reaches the API: a name in /etc/hosts, and a load balancer (haproxy) behind it."""

from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.api_endpoint import virtual_address_operations as virtual_address
from deploys.parts.files import operations as files
from deploys.parts.files.fact import Files
from deploys.parts.kernel import operations as kernel
from deploys.parts.packages import operations as package_operations
from deploys.parts.units import operations as units
from deploys.parts.units.fact import Units
from gpuboot.config.inventory import API_NAME
from gpuboot.hosts.platforms import PackageManager
from gpuboot.plan import Change, Effect

CONFIG = "/etc/haproxy/haproxy.cfg"
UNIT = "haproxy.service"
HOSTS_BEGIN = "# gpuboot: the API server"
HOSTS_END = "# gpuboot: end of the API server"
_PACKAGES = {"haproxy": ""}  # the distribution's
_CHECK = "haproxy -c -q -f"
# a configuration that is not ours stays
STOP = (
    f"if grep -qs '^listen {API_NAME}$' {CONFIG}; then"
    f" systemctl disable --now {UNIT} && rm -f {CONFIG}; fi"
)


@operation()
def resolvable(address: str, template: str = "", wait: bool = False) -> Commands:
    """Ensure /etc/hosts knows where this host reaches the API, in a block of its own.

    + address: IP address of the API server, of the load balancer before them, or the virtual one
    + template: the file of which cloud-init makes /etc/hosts at each boot; "" where it does not
    + wait: an API server has to answer there before it is written: the host depends on one
    """
    before = [virtual_address.wait_command(address)] if wait else []
    lines = [f"{address} {API_NAME}"]
    yield from kernel.hosts_block(HOSTS_BEGIN, HOSTS_END, lines, template, before)


@operation()
def balanced(config: str, manager: PackageManager) -> Commands:
    """Ensure haproxy runs with exactly this configuration, which is tried before it is in place.

    + config: text of its one file
    + manager: the program that installs it
    """
    foresee(
        [
            package_operations.question(host, _PACKAGES, manager),
            (host, Files, {"paths": [CONFIG]}),
            (host, Units, {"units": [UNIT]}),
        ]
    )
    yield from package_operations.installed._inner(_PACKAGES, manager)
    existing = read(Files, paths=[CONFIG])
    if files.differing({CONFIG: config}, existing):
        files.record_texts({CONFIG: config}, existing)
        note = "requests go on by the connections of its old process"
        changes.record(Effect(kind="restart", target="haproxy", local=True, note=note))
        yield from files.write_valid(CONFIG, config, _CHECK)
        yield StringCommand(f"systemctl reload-or-restart {UNIT}")
    yield from units.ensured([UNIT])


@operation()
def unbalanced() -> Commands:
    """Ensure that haproxy does not run on a host that needs no load balancer any more."""
    if CONFIG not in read(Files, paths=[CONFIG]):
        host.noop("there is no load balancer")
        return
    changes.record(Change(subject=f"unit {UNIT}", field="state", old="active", new="stopped"))
    yield StringCommand(STOP)
