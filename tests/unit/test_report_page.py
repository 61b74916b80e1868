"""verify.html contradicts itself nowhere."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from gpuboot.verify.history.files import note
from gpuboot.verify.report.html import html
from gpuboot.verify.report.junit import junit
from tests.unit.evidence import control_plane, evidence, workload_result
from tests.unit.reports import report, text

BAD = workload_result("gpu1", 1, passed=False, error="Result verification failed at element 1!")


def test_a_gpu_that_fails_for_the_first_time_is_none_to_which_nothing_happened(
    tmp_path: Path,
) -> None:
    sound = evidence()
    note(replace(report(sound), started="2026-11-20T14:00:00Z"), tmp_path)
    rest = tuple(item for item in sound.workload_results if item.uuids != BAD.uuids)
    now = report(replace(sound, workload_results=(*rest, BAD)))
    page = html(now, note(now, tmp_path).strips(now)).split("<h2>History")[1]
    eventful, quiet = page.split("<details", 1)
    assert "1 fault" in eventful
    assert 'class="s-fail"' in eventful
    assert "5 GPUs to which nothing happened" in quiet
    assert not re.search(r"\d faults?<", quiet.split("</details>")[0])


def test_each_link_of_the_cluster_shows_its_own_result() -> None:
    seen = evidence(control_planes=(control_plane(), control_plane(node="cp2", error="no SSH")))
    made = report(seen)
    page = html(made)
    assert "see above" not in page + text(made) + junit(made)
    table = page.split("</ol></div>")[1].split("</table>")[0]
    rows = dict(re.findall(r"<b>([\w-]+)</b>.*?</td><td>(.*?)</td></tr>", table, re.DOTALL))
    assert "gpu1, gpu2: kubernetes is resolved, a:1 answers" in rows["services"]
    assert "gpu1, gpu2: no device by all" in rows["isolation"]
    for link in ("certificates", "backup"):
        assert "cp2: no SSH" in rows[link]
        assert rows[link].index("cp2") < rows[link].index("cp1")
    assert all("<div>" in row for row in rows.values())
