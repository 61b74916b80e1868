"""Docker's packet filter, beside a pod network that accepts its packets in a table of its own."""

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.docker.filter_fact import CHAIN, MissingRules
from deploys.parts.files import operations as files
from deploys.parts.units import operations as units
from gpuboot.plan import Change

UNIT = "gpuboot-docker-pods.service"


@operation()
def pods_let_through(pods: str, unit: str) -> Commands:
    """Ensure that Docker's chain for users lets pods pass, now and whenever Docker starts.

    It is asked before the policy of FORWARD is, whoever set that to DROP. Docker keeps the chain's
    rules when it is restarted, and after a boot the chain is empty.

    + pods: network of all pods
    + unit: text of the systemd unit that adds the rules
    """
    missing = read(MissingRules, pods=pods)
    changed = yield from files.of_units({f"/etc/systemd/system/{UNIT}": unit})
    yield from units.ensured([UNIT], started=False)
    if missing:
        changes.record(Change(subject=f"iptables chain {CHAIN}", new=f"packets of {pods} pass"))
    if missing or changed:
        yield StringCommand("systemctl restart", QuoteString(UNIT))
    else:
        host.noop("Docker's packet filter drops no packet of pods")
