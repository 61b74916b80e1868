"""Rights and silences that people give, each with what drift names of it: rows of a table."""

from __future__ import annotations

from gpuboot.verify.alert_path import Matcher
from tests.unit.drift_plants import Row, binding, silence, widened

ACCESS_ROWS = (
    Row(
        "cluster-admin for who has no credentials",
        lambda: binding("everyone", "cluster-admin", "Group", "system:unauthenticated"),
        ("ClusterRoleBinding everyone", "system:unauthenticated", "ClusterRole cluster-admin"),
    ),
    Row(
        "rights of every pod",
        lambda: binding("permissive-binding", "view", "Group", "system:serviceaccounts"),
        ("ClusterRoleBinding permissive-binding", "every pod", "ClusterRole view"),
    ),
    Row(
        "rights of everybody with a login",
        lambda: binding("all", "edit", "Group", "system:authenticated"),
        ("ClusterRoleBinding all", "every pod included"),
    ),
    *(
        Row(
            f"everything for {name}",
            lambda kind=kind, name=name: binding("all", "cluster-admin", kind, name),  # type: ignore[misc]
            ("ClusterRoleBinding all", words, "cluster-admin"),
        )
        for kind, name, words in (
            ("Group", "system:nodes", "every kubelet"),
            ("Group", "system:bootstrappers", "a token to join"),
            ("Group", "system:serviceaccounts:ml", "every pod of the namespace"),
            ("ServiceAccount", "default", "names no account"),
        )
    ),
    Row(
        "a namespace for anonymous",
        lambda: binding("lookers", "edit", "User", "system:anonymous", "monitoring"),
        ("RoleBinding monitoring/lookers", "delete rolebinding lookers -n monitoring"),
    ),
    Row(
        "Kubernetes' own binding to another role",
        lambda: binding("system:discovery", "cluster-admin", "Group", "system:authenticated"),
        ("ClusterRoleBinding system:discovery", "ClusterRole cluster-admin"),
    ),
    Row(
        "who the cluster trusts, to be changed by every pod",
        lambda: widened(
            "system:cluster-trust-bundle-discovery",
            {"resources": ["clustertrustbundles"], "verbs": ["get", "update"]},
        ),
        ("ClusterRole system:cluster-trust-bundle-discovery", "get, update clustertrustbundles"),
    ),
    Row(
        "Secrets in a role that everybody has",
        lambda: widened(
            "system:discovery",
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]},
        ),
        ("ClusterRole system:discovery", "get, list secrets"),
    ),
    Row(
        "a silence over everything",
        lambda: silence(Matcher(name="alertname", value=".*", is_regex=True)),
        ("silence 44e7", "holds back every alert of gpuboot", "bob"),
    ),
    Row(
        "a silence over one alert for years",
        lambda: silence(Matcher(name="alertname", value="GPULost")),
        ("holds back GPULost",),
    ),
    Row(
        "a silence over a whole severity",
        lambda: silence(Matcher(name="severity", value="critical")),
        ("holds back ", "more"),
    ),
    Row(
        "a silence over one node for years",
        lambda: silence(Matcher(name="node", value="gpu1")),
        ('holds back every alert of gpuboot of node="gpu1"', "end it, or ask bob"),
    ),
    Row(
        "a silence over one alert of one node for years",
        lambda: silence(
            Matcher(name="Hostname", value="gpu1"), Matcher(name="alertname", value="GPULost")
        ),
        ('holds back GPULost of Hostname="gpu1"',),
    ),
)
