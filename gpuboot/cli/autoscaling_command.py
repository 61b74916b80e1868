"""`gpuboot autoscaling`: YAML for scaling workloads on GPU load (see docs/autoscaling.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="YAML for scaling on GPU load: unknown load keeps the replicas. See docs/autoscaling.md.",
)

Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Of the workload.")]
MinReplicas = Annotated[int, typer.Option("--min", help="Replicas.")]
MaxReplicas = Annotated[int, typer.Option("--max", help="Replicas.")]
Target = Annotated[float, typer.Option("--target", help="Mean SM activity to hold, 0 to 1.")]
Home = Annotated[str, typer.Option("--monitoring", help="Namespace of kube-prometheus-stack.")]
HOME = "monitoring"


Kind = Literal["Deployment", "StatefulSet"]  # what is scaled


@app.command()
def adapter(monitoring: Home = HOME) -> None:
    """Values of the chart prometheus-adapter, which gives HPA the metric gpu_sm_active."""
    from gpuboot.usage import autoscaling

    _print(autoscaling.adapter_values(_settings(monitoring)))


@app.command()
def hpa(
    name: str,
    namespace: Namespace = "default",
    kind: Kind = "Deployment",
    minimum: MinReplicas = 1,
    maximum: MaxReplicas = 4,
    target: Target = 0.6,
) -> None:
    """A HorizontalPodAutoscaler on the adapter's metric."""
    from gpuboot.usage import autoscaling

    _print(autoscaling.hpa(_workload(namespace, name, kind, minimum, maximum, target)))


@app.command()
def keda(
    name: str,
    namespace: Namespace = "default",
    kind: Kind = "Deployment",
    minimum: MinReplicas = 1,
    maximum: MaxReplicas = 4,
    target: Target = 0.6,
    monitoring: Home = HOME,
) -> None:
    """A ScaledObject for KEDA."""
    from gpuboot.usage import autoscaling

    workload = _workload(namespace, name, kind, minimum, maximum, target)
    _print(autoscaling.scaled_object(workload, _settings(monitoring)))


def _workload(
    namespace: str, name: str, kind: Kind, minimum: int, maximum: int, target: float
) -> Any:
    from gpuboot.usage.autoscaling import Workload

    try:
        return Workload(namespace, name, kind, minimum, maximum, target)
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def _settings(namespace: str) -> Any:
    from gpuboot.config.settings import parse_settings

    return parse_settings({"monitoring": {"namespace": namespace}})


def _print(tree: Any) -> None:
    import yaml

    print(yaml.safe_dump(tree, sort_keys=False, width=100), end="")
