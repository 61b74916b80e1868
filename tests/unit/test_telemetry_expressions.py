"""Which metrics an expression reads: the helper of the rules' and the dashboards' tests."""

from __future__ import annotations

import pytest

from gpuboot.telemetry import ExpressionError, metric_names, not_collected


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("up", {"up"}),
        ("sum(a) by (x)", {"a"}),
        ("sum by (x, y) (rate(a[5m]))", {"a"}),
        ("quantile without(x)(0.9, a)", {"a"}),
        ("a * on(node, UUID) group_left(pod) b", {"a", "b"}),
        ("a / ignoring(type) group_right b", {"a", "b"}),
        ("a and on() b unless on (x) c", {"a", "b", "c"}),
        ("a > bool 0.5 or 1.5e-3 * b - Inf + 0x1f", {"a", "b"}),
        ("node:gpu:sum offset -1h30m", {"node:gpu:sum"}),
        ("max_over_time(rate(a[5m])[1d:1m] @ start())", {"a"}),
        ("a[$__rate_interval] + a[${step}]", {"a"}),
        ('topk($n, a{node=~"$node"})', {"a"}),
        ('count_values("version", a)', {"a"}),
        ("""a{x="b{c}", y=~'d"[5m]', z!=`e`}""", {"a"}),
        ('a{x="\\"} b{"}', {"a"}),
        ('{__name__="a", x="b"}', {"a"}),
        ('{__name__=~"a|b:c"}', {"a", "b:c"}),
        ('{"a.b", x="c"}', {"a.b"}),
        ('label_replace(a, "to", "$1", "from", "(.*)")', {"a"}),
        ("# sum of nothing\nabsent(a) # b", {"a"}),
        ("time() - timestamp(a)", {"a"}),
        ("vector(1)", set()),
    ],
)
def test_names_in_expressions(expression: str, names: set[str]) -> None:
    assert metric_names(expression) == names


@pytest.mark.parametrize(
    ("expression", "cause"),
    [
        ('sum(a{x="b"', "never closed"),
        ("a ; b", "no PromQL from '; b'"),
        ('a{x="b}', "no PromQL"),
        ('{__name__=~"DCGM_.+"}', "may be any metric"),
        ('{__name__!="a"}', "may be any metric"),
    ],
)
def test_what_cannot_be_told_is_an_error(expression: str, cause: str) -> None:
    with pytest.raises(ExpressionError, match=cause):
        metric_names(expression)


def test_a_metric_nobody_collects() -> None:
    expression = "max by (node) (DCGM_FI_DEV_GPU_TEMP) > on (node) node:limit:max"
    assert not_collected(expression, {"DCGM_FI_DEV_GPU_TEMP"}) == {"node:limit:max"}
