"""Namespaces of teams: ResourceQuota and PriorityClass, and what is wrong with the settings."""

from collections.abc import Mapping

from gpuboot.cluster.manifests import Object
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings, Team
from gpuboot.hosts import gpu_sharing

KINDS = ("ResourceQuota", "PriorityClass")
QUOTA = "gpus"
# by this label `gpuboot cost` finds the team of a namespace
TEAM_LABEL = "team"
_SYSTEM = (
    *("default", "kube-system", "kube-public", "kube-node-lease", "kube-flannel"),
    *("dcgm-exporter", "local-path-storage", "gpuboot-verify"),
)


def objects(teams: Mapping[str, Team]) -> list[Object]:
    """The objects of all teams, beside their namespaces."""
    priorities = [_priority(name, team) for name, team in teams.items()]
    return priorities + [_quota(name, team) for name, team in teams.items() if _hard(team)]


def _priority(name: str, team: Team) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"team-{name}"},
        "value": team.priority,
        "globalDefault": False,
        "preemptionPolicy": "PreemptLowerPriority" if team.preempt else "Never",
        "description": f"Pods of team {name}.",
    }


def _quota(name: str, team: Team) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": QUOTA, "namespace": name},
        "spec": {"hard": _hard(team)},
    }


def _hard(team: Team) -> dict[str, str]:
    """A team's quota of GPUs: extended resources have limits = requests, quotas take requests."""
    gpus = {} if team.gpus is None else {gpu_sharing.GPU: team.gpus}
    mig = {gpu_sharing.resource(profile): count for profile, count in team.mig.items()}
    return {f"requests.{name}": str(count) for name, count in {**gpus, **mig}.items()}


def problems(settings: Settings) -> list[Problem]:
    """Namespaces that are not a team's, and resources that no node has."""
    teams = settings.teams
    reserved = {*_SYSTEM, settings.monitoring.namespace, settings.gpu_operator.namespace}
    problems = []
    for name, team in teams.items():
        if name in reserved:
            cause = f'teams["{name}"]: the namespace {name} is the cluster\'s own'
            problems.append(Problem("", cause, "name the team, and so its namespace, otherwise"))
        if team.mig and settings.gpu_operator.mig_strategy != "mixed":
            strategy = settings.gpu_operator.mig_strategy
            cause = f'teams["{name}"].mig: under gpu_operator.mig_strategy {strategy} instances '
            remedy = 'set gpus, or mig_strategy = "mixed"'
            problems.append(Problem("", cause + "have no names of their own", remedy))
    return problems
