"""Rules in force. Prometheus reads them from a volume, which the kubelet renews once a minute."""

import shlex

from pyinfra.api.command import QuoteString, StringCommand

from deploys.engine import changes
from deploys.engine.commands import Commands, shell_failure
from deploys.engine.operation import operation
from deploys.parts.cluster.kubectl import KUBECTL
from gpuboot.plan import Effect

_WRITTEN_S = 30

# A pod that changes is looked at by its kubelet at once, its volumes included.
_REREAD = f"""\
for left in $(seq {_WRITTEN_S}); do
  if {KUBECTL} -n {{namespace}} get configmaps -l prometheus-name={{name}} -o yaml \\
    | grep -q {{digest}}
  then exec {KUBECTL} -n {{namespace}} annotate --overwrite pods \\
    -l operator.prometheus.io/name={{name}} gpuboot.io/rules={{digest}}
  fi
  sleep 1
done
{{failed}}"""


@operation(is_idempotent=False, compared=False)
def reloaded(namespace: str, prometheus: str, digest: str) -> Commands:
    """Have Prometheus read its rules now instead of within two minutes. Runs on the leader.

    Only for a run that changed them: it asks nobody whether that is needed.

    + namespace: where Prometheus runs
    + prometheus: name of the Prometheus object
    + digest: of the rules, as `gpuboot.monitoring.rules.digest` tells it

    Source: prometheus-operator's labels on what it makes (pkg/prometheus/rules.go, labels.go).
    """
    failed = shell_failure(
        f"the Prometheus operator has not written the new rules after {_WRITTEN_S} s",
        "read in its log what it refuses, then run again",
    )
    script = _REREAD.format(
        namespace=shlex.quote(namespace),
        name=shlex.quote(prometheus),
        digest=shlex.quote(digest),
        failed=failed.get_raw_value(),
    )
    changes.record(
        Effect(
            kind="reload", target="Prometheus", note="it reads its rules at once; nothing restarts"
        )
    )
    yield StringCommand("sh -ec", QuoteString(script))
