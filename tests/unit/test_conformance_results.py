"""What a JUnit file of Kubernetes' suite comes to: nothing that did not pass is passed over."""

from __future__ import annotations

import pytest

from gpuboot.conformance.suite_results import Results, ResultsError, Spec, parse_junit, results_of

DNS = "[sig-network] DNS should provide DNS for the cluster [Conformance]"
TAINTS = "[sig-node] NoExecuteTaintManager evicts pods [Serial] [Conformance]"
# as e2e.test v1.36.3 writes it, shortened
JUNIT = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" disabled="2" errors="0" failures="2" time="9.5">
 <testsuite name="Kubernetes e2e suite" package="/" tests="4" failures="2">
  <properties><property name="SuiteSucceeded" value="false"></property></properties>
  <testcase name="[SynchronizedBeforeSuite]" classname="Kubernetes e2e suite" status="passed"
   time="0.1"></testcase>
  <testcase name="[It] {DNS}" classname="Kubernetes e2e suite" status="passed" time="4.1">
  </testcase>
  <testcase name="[It] {TAINTS}" classname="Kubernetes e2e suite" status="failed" time="4.1">
   <failure message="" type="failed">[FAILED] pod was not evicted
In [It] at: k8s.io/kubernetes/test/e2e/node/taints.go:201</failure>
   <system-err>&gt; Enter [BeforeEach]</system-err>
  </testcase>
  <testcase name="[It] [sig-apps] Job should run [Conformance]" status="skipped" time="1">
   <skipped message="skipped - needs SSH"></skipped>
  </testcase>
  <testcase name="[It] [sig-storage] another [Feature:X]" status="skipped" time="0">
   <skipped message="skipped"></skipped>
  </testcase>
  <testcase name="[It] [sig-storage] a third [Feature:X]" status="pending" time="0">
   <skipped message="pending"></skipped>
  </testcase>
  <testcase name="[ReportAfterSuite] Kubernetes e2e JUnit report" status="panicked" time="0">
   <error message="test panicked" type="panicked">it panicked</error>
  </testcase>
 </testsuite>
</testsuites>
"""
JOB = "[sig-apps] Job should run [Conformance]"


def test_selected_specs_and_failed_hooks_are_read() -> None:
    specs = {spec.name: spec for spec in parse_junit(JUNIT)}
    assert {name: spec.status for name, spec in specs.items()} == {
        DNS: "passed",
        TAINTS: "failed",
        JOB: "skipped",
        "[ReportAfterSuite] Kubernetes e2e JUnit report": "failed",
    }
    assert specs[TAINTS].text.startswith("[FAILED] pod was not evicted\n")
    assert specs[JOB].text == "needs SSH"


@pytest.mark.parametrize("text", ["", "<testsuites>", "no XML"])
def test_what_is_no_junit_file_is_said(text: str) -> None:
    with pytest.raises(ResultsError, match="JUnit file cannot be read"):
        parse_junit(text)


def test_a_spec_that_skipped_itself_or_never_ran_has_failed() -> None:
    specs = [Spec(DNS, "passed"), Spec(JOB, "skipped", "needs SSH")]
    results = results_of(specs, [DNS, JOB, TAINTS])
    assert results.failed == {JOB: "skipped itself: needs SSH", TAINTS: "did not run"}
    assert results.line == "1 passed, 2 failed, 0 skipped"
    assert not results.is_good


def test_only_specs_of_the_table_are_skipped_and_only_those_that_would_have_run() -> None:
    reason = {TAINTS: "the lab's machines share one kernel", "[sig-x] of the other part": "as well"}
    results = results_of([Spec(DNS, "passed")], [DNS, TAINTS], reason)
    assert results == Results(1, {}, {TAINTS: "the lab's machines share one kernel"})
    assert results.is_good


def test_a_spec_of_the_table_that_ran_and_failed_has_failed() -> None:
    results = results_of([Spec(TAINTS, "failed", "late")], [TAINTS], {TAINTS: "cannot run"})
    assert (results.failed, results.skipped) == ({TAINTS: "late"}, {})


def test_a_suite_of_which_nothing_ran_is_not_good() -> None:
    assert not results_of([]).is_good
