"""A plan as it is read: by a person on a terminal, and by programs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from deploys.parts.helm.fact import HelmManifests
from gpuboot.cluster.helm_releases import Release, release_changes
from gpuboot.hosts.package_changes import package_changes
from gpuboot.plan import Change, Duration, Effect, Plan, Step, Unknown
from gpuboot.plan.history import WAIT, durations
from gpuboot.plan.restarted_workloads import effects, object_changes, release_effects
from gpuboot.plan.terminal import render


def step(
    *items: Any, phase: str = "Monitoring", name: str = "Deploy it", host: str = "cp1"
) -> Step:
    return Step(phase=phase, name=name, hosts={host: items})


def plan(*steps: Step, **fields: Any) -> Plan:
    return Plan(cluster="prod", hosts=["cp1", "gpu1", "gpu2"], steps=steps, **fields)


def lines(*steps: Step, **fields: Any) -> str:
    return "\n".join(render(plan(*steps, **fields)))


def test_nothing_to_do_is_one_line() -> None:
    assert lines() == "Nothing to do: 3 hosts of prod are as the settings say."


def test_a_change_is_told_old_and_new_in_its_phase_and_on_its_host() -> None:
    change = Change(subject="Helm release kps", field="prometheus.retention", old="15d", new="20d")
    restart = Effect(kind="restart", target="Prometheus mon/p", note="no alerts meanwhile")
    output = lines(step(change, restart), unchanged=73)
    assert "1 operation changes 1 of 3 hosts; 73 change nothing" in output
    assert "\nMonitoring\n  Deploy it · cp1\n" in output
    assert "~ Helm release kps: prometheus.retention 15d → 20d" in output
    assert "! Prometheus mon/p restarts: no alerts meanwhile" in output
    assert "restarts:   Prometheus mon/p" in output
    assert "reboots:    none" in output


def test_hosts_that_change_alike_share_their_lines() -> None:
    change = Change(subject="package kubelet", field="version", old="1.36.1", new="1.36.2")
    shared_step = Step(
        phase="Kubernetes", name="Install", hosts={"gpu1": [change], "gpu2": [change]}
    )
    output = lines(shared_step)
    assert "Install · gpu1, gpu2" in output
    assert output.count("package kubelet") == 1


def test_packages_with_the_same_version_share_a_line() -> None:
    items = package_changes({}, {"a": "1.0", "b": "1.0"})
    assert "+ package a, b: version 1.0" in lines(step(*items))


def test_a_reboot_names_the_pods_that_it_interrupts() -> None:
    effect = Effect(kind="reboot", target="node gpu1", gpu_pods=("ml/train-0",))
    output = lines(step(effect))
    assert "node gpu1 reboots; this interrupts GPU pods: ml/train-0" in output
    assert "reboots:    node gpu1" in output
    assert "GPU pods:   interrupted: ml/train-0" in output
    unknown = Effect(kind="reboot", target="node gpu1", gpu_pods=None)
    assert "which GPU pods this interrupts is not known" in lines(step(unknown))
    assert "GPU pods:   which are interrupted is not known" in lines(step(unknown))
    assert "as far as is known before the run" in lines(step(unknown, effect))


def test_what_cannot_be_known_before_is_named() -> None:
    output = lines(
        step(Unknown(what="containerd's configuration", until="containerd is installed"))
    )
    assert "? containerd's configuration: not known before containerd is installed" in output
    assert "as far as is known" in output
    assert "~ something; it does not tell what" in lines(step())


def test_a_long_list_is_cut_and_says_so() -> None:
    items = [Change(subject=f"file /etc/{number}", new=str(number)) for number in range(20)]
    assert "… and 8 more changes (--diff shows all)" in lines(step(*items))
    assert "more changes" not in "\n".join(render(plan(step(*items)), full=True))


def test_conditional_operations_say_so() -> None:
    maybe = Step(phase="P", name="N", hosts={"cp1": ()}, conditional=frozenset({"cp1"}))
    assert "only if an earlier operation of this run calls for it" in lines(maybe)


def test_a_plan_as_json_has_everything() -> None:
    change = Change(subject="file /etc/hosts", diff=("+a",))
    built_plan = plan(
        step(change, Unknown(what="a", until="b")),
        durations={"Monitoring": Duration(seconds=4.0, started="2026-11-20T10:00:00Z")},
    ).to_json()
    assert json.loads(json.dumps(built_plan)) == built_plan
    assert built_plan["changes"] is True
    assert built_plan["steps"][0]["hosts"] == [
        {
            "host": "cp1",
            "conditional": False,
            "changes": [
                {
                    "subject": "file /etc/hosts",
                    "field": "",
                    "old": None,
                    "new": None,
                    "diff": ["+a"],
                }
            ],
            "effects": [],
            "unknown": [{"what": "a", "until": "b"}],
        }
    ]
    assert built_plan["last_time"]["Monitoring"]["seconds"] == 4.0


def test_a_release_tells_chart_status_and_values() -> None:
    release = Release("web", "1.0.0", "failed", 2, {"a": 1})
    changes = release_changes("Helm release web", release, "web", "v1.1.0", {"a": 2})
    assert [(change.field, change.old, change.new) for change in changes] == [
        ("chart", "web 1.0.0", "web v1.1.0"),
        ("status", "failed", "deployed"),
        ("a", 1, 2),
    ]
    [new] = release_changes("Helm release web", Release(), "web", "1", {"a": {"b": 1}, "c": [1, 2]})
    assert new.new == "web 1 with 2 values"


def prometheus(**spec: Any) -> dict[str, Any]:
    return {"kind": "Prometheus", "metadata": {"name": "p", "namespace": "mon"}, "spec": spec}


def test_retention_restarts_prometheus_and_another_scrape_interval_does_not() -> None:
    [restart] = effects(prometheus(retention="15d"), prometheus(retention="20d"))
    assert (restart.kind, restart.target) == ("restart", "Prometheus mon/p")
    assert "no queries, alerts or scrapes" in restart.note
    [two] = effects(
        prometheus(retention="15d", replicas=2), prometheus(retention="20d", replicas=2)
    )
    assert two.note == "one replica after another"
    [reload] = effects(prometheus(scrapeInterval="15s"), prometheus(scrapeInterval="30s"))
    assert reload.kind == "reload"
    assert not effects(prometheus(), prometheus())


def test_the_operator_s_policy_names_the_daemonset_that_restarts() -> None:
    def policy(**spec: Any) -> dict[str, Any]:
        return {"kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": spec}

    [exporter] = effects(policy(dcgmExporter={"a": 1}), policy(dcgmExporter={"a": 2}), "gpu")
    assert exporter.target == "DaemonSet gpu/nvidia-dcgm-exporter"
    assert exporter.gpu_pods == ()
    assert len(effects(policy(daemonsets={}), policy(daemonsets={"a": 1}), "gpu")) == 1
    [driver] = effects(policy(driver={"a": 1}), policy(driver={"a": 2}), "gpu")
    assert driver.gpu_pods is None


def test_a_pod_template_that_changes_is_a_rollout_and_other_fields_are_not() -> None:
    def text(image: str, replicas: int) -> str:
        return (
            "kind: ConfigMap\nmetadata: {name: same}\n---\nkind: DaemonSet\n"
            f"metadata: {{name: d}}\nspec: {{x: {replicas}, template: {{image: {image}}}}}\n"
        )

    [rollout] = release_effects(text("a", 1), text("b", 1), "ns")
    assert (rollout.kind, rollout.target) == ("restart", "DaemonSet ns/d")
    assert release_effects(text("a", 1), text("a", 2), "ns") == []


def test_what_only_the_api_server_has_is_no_change() -> None:
    new = {"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"template": {"image": "b"}}}
    old = {
        "kind": "DaemonSet",
        "metadata": {"name": "d", "uid": "u"},
        "spec": {"template": {"image": "a", "restartPolicy": "Always"}, "revisionHistoryLimit": 10},
        "status": {"x": 1},
    }
    assert [
        (field_change.field, field_change.old, field_change.new)
        for field_change in object_changes(old, new)
    ] == [("spec.template.image", "a", "b")]
    [object_change] = object_changes(None, new)
    assert (object_change.subject, object_change.new) == ("DaemonSet d", "created")


def test_a_rollout_that_the_operator_s_policy_tells_of_is_told_once() -> None:
    def text(value: int) -> str:
        return (
            f"kind: ClusterPolicy\nmetadata: {{name: p}}\nspec: {{gfd: {{a: {value}}}}}\n---\n"
            "kind: DaemonSet\nmetadata: {name: gpu-feature-discovery}\n"
            f"spec: {{template: {{a: {value}}}}}\n"
        )

    [once] = release_effects(text(1), text(2), "gpu")
    assert once.note == "GPU pods run on"


def report(folder: Path, name: str, seconds: float, changed: list[str], **fields: Any) -> None:
    (folder / name).mkdir(parents=True)
    run = {
        "cluster": "prod",
        "started": f"2026-11-{name[6:8]}T10:00:00Z",
        "exit": 0,
        "phases": [{"name": "Monitoring", "operations": 9, "seconds": seconds}],
        "hosts": {"cp1": {"changed": changed}},
        **fields,
    }
    (folder / name / "run.json").write_text(json.dumps(run))


def test_how_long_it_took_is_of_the_newest_run_that_changed_the_same(tmp_path: Path) -> None:
    planned = [step(name="Deploy kps (kps 1.2.3)")]
    assert durations(tmp_path / "none", "prod", planned) == {}
    report(tmp_path, "20261118T100000Z-prod", 30.0, ["Monitoring | Deploy kps (kps 1.1.0)"])
    report(tmp_path, "20261119T100000Z-prod", 90.0,
           ["Monitoring | Deploy kps (kps 1.2.3)", "Monitoring | Apply rules"])  # fmt: skip
    report(tmp_path, "20261120T100000Z-prod", 5.0, [])
    report(tmp_path, "20261121T100000Z-prod", 7.0, ["Monitoring | Deploy kps (kps 1)"], exit=1)
    report(tmp_path, "20261122T100000Z-prod-b", 8.0, ["Monitoring | Deploy kps (k 1)"], cluster="b")
    [duration] = durations(tmp_path, "prod", planned).values()
    assert duration == Duration(seconds=30.0, started="2026-11-18T10:00:00Z")
    two_steps = [*planned, step(name="Apply rules")]
    assert durations(tmp_path, "prod", two_steps)["Monitoring"].seconds == 90.0
    assert "Monitoring 30 s (as on 2026-11-18)" in lines(
        *planned, durations={"Monitoring": duration}
    )
    assert "not known: no earlier run changed the same" in lines(*planned)


def test_an_upper_bound_is_called_one(tmp_path: Path) -> None:
    report(tmp_path, "20261119T100000Z-prod", 90.0, ["Monitoring | Deploy it", "Monitoring | More"])
    estimates = durations(tmp_path, "prod", [step()])
    assert estimates["Monitoring"].changed_more
    assert "Monitoring at most 90 s" in lines(step(), durations=estimates)


def test_the_wait_for_all_that_changed_is_timed_as_well(tmp_path: Path) -> None:
    def waited(seconds: float) -> list[dict[str, Any]]:
        return [{"name": name, "operations": 1, "seconds": seconds} for name in ("Base", WAIT)]

    deployed = ["Monitoring | Deploy it", "GPU Operator | Deploy it"]
    report(tmp_path, "20261119T100000Z-prod", 0, deployed, phases=waited(80.0))
    report(tmp_path, "20261120T100000Z-prod", 0, deployed[:1], phases=waited(20.0))
    single_step = [step(phase="Monitoring", name="Deploy it")]
    two_steps = [*single_step, step(phase="GPU Operator", name="Deploy it")]
    assert durations(tmp_path, "prod", single_step)[WAIT].seconds == 20.0
    estimates = durations(tmp_path, "prod", two_steps)
    assert estimates[WAIT].seconds == 80.0
    assert f"{WAIT} 80 s (as on 2026-11-19)" in lines(*two_steps, durations=estimates)
    assert WAIT not in durations(tmp_path, "prod", [step(phase="Base", name="Other")])


def test_secrets_leave_a_host_in_no_manifest(tmp_path: Path) -> None:
    """The script that reads a release's manifests, run with a Helm that prints two of them."""
    helm = tmp_path / "helm"
    helm.write_text(
        '#!/bin/sh\nif [ "$1" = template ]; then cat; fi\n'
        "printf -- '---\\nkind: Secret\\ndata: {x: very-secret}\\n---\\n# a\\nkind: ConfigMap\\n'\n"
    )
    helm.chmod(0o755)
    archive = tmp_path / "web.tgz"
    archive.touch()
    fact = HelmManifests()
    command = fact.command(helm=str(helm), release="web", namespace="w", archive=str(archive))
    result = subprocess.run(
        ["sh", "-c", command], input="a: 1\n", capture_output=True, text=True, check=True
    )
    processed = fact.process(result.stdout.splitlines())
    assert processed.old == "---\n# a\nkind: ConfigMap\n"
    assert processed.new == "a: 1\n---\n# a\nkind: ConfigMap\n"
