"""verify.html contradicts itself nowhere."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpuboot.verify.evidence import Rule, Target
from gpuboot.verify.findings import CLUSTER_LINKS, ROW_LINKS
from gpuboot.verify.report.html import html
from gpuboot.verify.report.junit import junit
from tests.unit.evidence import control_plane, evidence, host, metrics, workload_result
from tests.unit.reports import report, text
from tests.unit.test_checks_monitoring_objects import evaluate_objects

WIDE = 1096.0  # pixels of a window on a desk
BAD = workload_result("gpu1", 1, passed=False, error="Result verification failed at element 1!")


def test_each_link_of_the_cluster_shows_its_own_result() -> None:
    observed = evidence(control_planes=(control_plane(), control_plane(node="cp2", error="no SSH")))
    built_report = report(observed)
    page = html(built_report)
    assert "see above" not in page + text(built_report) + junit(built_report)
    table = page.split("</ol></div>")[1].split("</table>")[0]
    rows = dict(re.findall(r"<b>([\w-]+)</b>.*?</td><td>(.*?)</td></tr>", table, re.DOTALL))
    assert "gpu1, gpu2: kubernetes is resolved, a:1 answers" in rows["services"]
    assert "gpu1, gpu2: no device by all" in rows["isolation"]
    for link in ("certificates", "backup"):
        assert "cp2: no SSH" in rows[link]
        assert rows[link].index("cp2") < rows[link].index("cp1")
    assert all("<div>" in row for row in rows.values())


# What a person reads without its check beside it: a number of what, or what is up?
_OF_NOTHING = re.compile(r"^(up|ready|\d+(, the newest| as | in use).*)$", re.IGNORECASE)


def test_every_result_of_the_cluster_says_what_it_is_of() -> None:
    observed = evidence(control_planes=(control_plane(),))
    findings = (*report(observed).findings, *evaluate_objects())
    results = [item.detail for item in findings if item.link in CLUSTER_LINKS]
    assert "kube-state-metrics is up" in results
    assert not [detail for detail in results if _OF_NOTHING.match(detail)]


def test_one_of_something_is_no_plural() -> None:
    small_metrics = metrics(
        rules=(Rule(name="GPULost", health="ok"),),
        targets=(Target(job="dcgm", node="gpu1", health="up"),),
    )
    collected = evidence(hosts=(host(count=1),), metrics=small_metrics)
    created_report = report(collected)
    page_text = (
        " ".join(item.detail for item in created_report.findings)
        + html(created_report).split("</style>")[1]
    )
    assert {"1 rule, none with an error", "1 target up"} <= {
        f.detail for f in created_report.findings
    }
    assert not re.findall(r"(?<!of )\b1 (?:rules|targets|GPUs|errors|findings|faults)\b", page_text)
    assert "<b>1</b><span>GPU</span>" in page_text


@pytest.mark.parametrize("count", range(1, len(ROW_LINKS) + 1))
def test_the_chain_leaves_no_link_alone_in_a_row(count: int) -> None:
    created_report = report(evidence())
    names = list(ROW_LINKS)[:count]
    rows = tuple(replace(row, links=dict.fromkeys(names, "pass")) for row in created_report.gpus)
    chain = html(replace(created_report, gpus=rows)).split('<ol class="chain"')[1].split("</ol>")[0]
    (a_row,) = map(int, re.findall(r"--a-row:(\d+)", chain))
    link_count = chain.count("<li>")
    assert a_row <= 9
    assert link_count <= a_row or link_count % a_row in {0, a_row - 1}, (link_count, a_row)


@pytest.mark.parametrize("count", [9, 10, len(ROW_LINKS)])
def test_columns_of_links_leave_room_for_uuids(count: int) -> None:
    """Side by side while they fit beside a node, a UUID and their spaces; else upright."""
    names = list(ROW_LINKS)[:count]
    built_report = report(evidence())
    rows = tuple(replace(row, links=dict.fromkeys(names, "pass")) for row in built_report.gpus)
    page = html(replace(built_report, gpus=rows)).split("</style>")[1]
    assert re.findall(r'<th class="c">([^<]+)</th>', page)[: len(names)] == names
    upright = 'class="matrix many"' in page
    wide = 30 * len(names) if upright else sum(6.2 * len(name) + 8 for name in names)
    assert wide + 40 * 7.6 + 80 <= WIDE
