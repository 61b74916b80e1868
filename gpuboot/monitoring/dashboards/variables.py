"""Variables (the choices at a dashboard's top), annotations and links that dashboards share."""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.models import dashboard as model

from gpuboot.monitoring.rules import Requirement
from gpuboot.telemetry.anchor import ANCHORS

TAG = "gpuboot"
DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")


@dataclass(frozen=True)
class Variable:
    """A choice among a label's values.

    + series: where the values come from; earlier variables may narrow it
    + label: the label
    + requires: what it has no choice without
    """

    title: str
    series: str
    label: str
    requires: Requirement = Requirement.NONE


# No field is on every kind of GPU: vGPU guests have no temperature. A node whose exporter never
# answered is known from the inventory.
_ANCHOR_METRICS = "|".join(ANCHORS)
_GPUS = f'__name__=~"{_ANCHOR_METRICS}"'
_NODES = f'__name__=~"node:gpu_expected:count|{_ANCHOR_METRICS}"'
# Namespaces and pods come from both, so that one without the other is enough.
_POD_METRICS = '__name__=~"namespace_pod:gpu_requested:sum|gpu:engine_active:avg5m"'
VARIABLES = {
    "node": Variable("Node", f"{{{_NODES}}}", "node"),
    "modelName": Variable("Model", f'{{{_GPUS},node=~"$node"}}', "modelName"),
    "gpu": Variable("GPU", f'{{{_GPUS},node=~"$node",modelName=~"$modelName"}}', "gpu"),
    "profile": Variable(
        "MIG profile",
        'gpu:engine_active:avg5m{node=~"$node",gpu=~"$gpu",GPU_I_PROFILE!=""}',
        "GPU_I_PROFILE",
    ),
    "namespace": Variable(
        "Namespace", f'{{{_POD_METRICS},namespace!=""}}', "namespace", Requirement.POD_LABELS
    ),
    "pod": Variable(
        "Pod", f'{{{_POD_METRICS},namespace=~"$namespace",pod!=""}}', "pod", Requirement.POD_LABELS
    ),
}

# What a selector of GPU series says: all that the GPU's own labels can be narrowed by.
ON_NODE = 'node=~"$node"'
ON_GPU = f'{ON_NODE},gpu=~"$gpu",modelName=~"$modelName"'
HELD_BY = 'namespace=~"$namespace",pod=~"$pod"'


def variables(names: tuple[str, ...], hidden: tuple[str, ...]) -> list[model.VariableModel]:
    """Grafana's variables: the data source first, then the named ones, all values chosen.

    + hidden: those that are not shown
    """
    return [
        model.VariableModel(
            model.VariableType.DATASOURCE, "datasource", "Data source", query="prometheus"
        ),
        *(_query(name, VARIABLES[name], name in hidden) for name in names),
    ]


def _query(name: str, variable: Variable, hidden: bool) -> model.VariableModel:
    query = f"label_values({variable.series}, {variable.label})"
    return model.VariableModel(
        model.VariableType.QUERY,
        name,
        variable.title,
        hide=model.VariableHide.HIDE_VARIABLE if hidden else None,
        query={"query": query, "refId": f"variable-{name}"},
        datasource=DATASOURCE,
        current=model.VariableOption(selected=True, text=["All"], value=["$__all"]),
        multi=True,
        include_all=True,
        # matches series without the label too: GPUs that no pod holds, GPUs without MIG
        all_value=".*",
        refresh=model.VariableRefresh.ON_TIME_RANGE_CHANGED,
        sort=model.VariableSort.NATURAL_ASC,
    )


def alerts_expr(matchers: str, alertstate: str = "firing") -> str:
    """Our own alerts in a state. Those of kube-prometheus-stack carry no `component`.

    Except its InfoInhibitor, which takes over the labels of what it inhibits.
    """
    gpuboot_matchers = f'alertstate="{alertstate}",component!="",alertname!="InfoInhibitor"'
    return f"ALERTS{{{gpuboot_matchers},{matchers}}}"


def annotation(matchers: str) -> model.AnnotationQuery:
    """Marks in every graph while an alert fires."""
    return model.AnnotationQuery(
        name="Firing alerts",
        datasource=DATASOURCE,
        icon_color="red",
        expr=alerts_expr(matchers),
    )


# Keys of Grafana's Prometheus annotations that the SDK's model does not know.
ANNOTATION_TEXTS = {
    "titleFormat": "{{alertname}}",
    "textFormat": "{{severity}} {{node}} GPU {{gpu}} {{namespace}} {{pod}}",
    "tagKeys": "severity",
    "step": "60s",
}


def links() -> list[model.DashboardLink]:
    """Links to all other dashboards of ours; they keep the chosen variables and times."""
    return [
        model.DashboardLink(
            "GPU dashboards",
            model.DashboardLinkType.DASHBOARDS,
            tags=[TAG],
            include_vars=True,
            keep_time=True,
        )
    ]


# Column headings that tell the linked dashboard what the row is about.
_FROM_COLUMNS = {"node": "Node", "gpu": "GPU", "namespace": "Namespace", "pod": "Pod"}


def row_url(uid: str, headings: frozenset[str]) -> str:
    """Address of dashboard `uid` about the table row that is clicked.

    + headings: of the table's columns
    """
    variables = "".join(
        f"var-{name}=${{__data.fields.{heading}}}&"
        for name, heading in _FROM_COLUMNS.items()
        if heading in headings
    )
    return f"/d/{uid}/?{variables}var-datasource=${{datasource}}&${{__url_time_range}}"
