"""Alerts on what publishers end: support of a version, and keys of package repositories."""

from __future__ import annotations

from gpuboot.config.support import END_METRIC, KEY_END_METRIC, NEAR_END_DAYS
from gpuboot.monitoring.rules.alert import OWN_SOURCE, Alert
from gpuboot.monitoring.rules.requirements import Requirement

_DAYS = '{{ $value | printf "%.0f" }} days are left.'
_BY_TIMER = "`gpuboot drift` or `gpuboot outdated` with `--metrics`, by a timer (docs/lifecycle.md)"

ALERTS = [
    Alert(
        name="VersionSupportEnding",
        severity="warning",
        component="cluster",
        action="none",
        expr="min by (key, version)"
        f' ({END_METRIC}{{key=~"(driver|kubernetes)[.]version"}} - time()) / 86400 < {{threshold}}',
        hold_for="1h",
        threshold=NEAR_END_DAYS,
        unit="days",
        summary="Support of {{ $labels.key }} {{ $labels.version }} ends",
        description=_DAYS,
        meaning="NVIDIA's driver branch, or the minor release of Kubernetes, gets no more fixes "
        "after that day.",
        reason="A hole in it stays open from then on, and a minor release of Kubernetes can only "
        "be left through the next one, a step at a time.",
        check=("What it is and what is served in its place: `gpuboot outdated INVENTORY`",
               "The days stand in gpuboot/config/support.toml, with their source and how old they "
               "are."),
        remedy=("Set `driver.version`, or `versions.kubernetes`, to a branch that lasts longer, "
                "and see what a run would do: `gpuboot plan INVENTORY`.",
                "Then `pyinfra INVENTORY deploys/site.py`: it drains each node for it, and proves "
                "it again.",
                "The publisher has prolonged it: update gpuboot."),
        source=f"the publishers' tables of releases; three months are {OWN_SOURCE}. Told by "
        f"{_BY_TIMER}",
        requires=Requirement.TIMER_METRICS,
    ),
    Alert(
        name="RepositoryKeyExpiring",
        severity="warning",
        component="cluster",
        action="none",
        expr=f"min by (repository) ({KEY_END_METRIC} - time()) / 86400 < {{threshold}}",
        hold_for="1h",
        threshold=30,
        unit="days",
        summary="The key of the {{ $labels.repository }} package repository ends",
        description=_DAYS,
        meaning="Hosts have a key of this repository that ends soon. After that day their package "
        "manager refuses all that it signed.",
        reason="No package of it can be installed then: no new node, no upgrade, no repair.",
        check=("Which key, and when: `gpuboot outdated INVENTORY`",
               "On a host: `gpg --show-keys /etc/apt/keyrings/gpuboot-NAME.asc`"),
        remedy=("Publishers prolong a key: `pyinfra INVENTORY deploys/site.py` fetches it again, "
                "from thirty days before its end on.",
                "A mirror with `key_sha256`: fill it again and set the digest of its new key.",
                "The publisher has another key: update gpuboot, which knows its fingerprint."),
        source=f"{OWN_SOURCE}. Keys of control planes are told by the timer of etcd's backups, all "
        f"others by {_BY_TIMER}",
        requires=Requirement.TIMER_METRICS,
    ),
]  # fmt: skip
