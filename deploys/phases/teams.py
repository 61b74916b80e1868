"""Teams: namespaces with quotas and priorities."""

from deploys.engine.operation import phase
from deploys.parts.cluster import object_operations as objects
from deploys.parts.cluster import operations as kubectl
from deploys.run.context import current
from gpuboot.cluster import team_objects as rules


@phase("Teams")
def teams() -> None:
    """Make the teams' namespaces, and bound what each may ask for; others' are let alone."""
    context = current()
    if not context.node.leader:
        return
    settings = context.settings.teams
    for name in settings:
        kubectl.namespace(
            name=f"Create the namespace of team {name}",
            namespace=name,
            labels={rules.TEAM_LABEL: name},
        )
    objects.synced(
        name="Apply quotas and priorities of teams",
        objects=rules.objects(settings),
        namespaces=None,
        kinds=rules.KINDS,
    )
