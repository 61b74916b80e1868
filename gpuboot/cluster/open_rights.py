"""RBAC that gives rights to people without credentials, to everybody with some, or to every pod.

What Kubernetes and kubeadm give them is little: to ask which APIs and versions there are, what they
may do themselves, whom the cluster trusts (since 1.37), and kubeadm's cluster-info. The API server
adds to its own roles what somebody has taken out, when it starts, and leaves what somebody has
added.
Source: kubernetes.io, Using RBAC Authorization, "Default roles and role bindings"; of Kubernetes
1.35.4 to 1.37.2 plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# annotation by which a site says that it means such rights
INTENT_ANNOTATION = "gpuboot.io/meant-for-everybody"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_BINDINGS = f"{RBAC}/clusterrolebindings"
BINDINGS = f"{RBAC}/rolebindings"
# kind and name of a subject -> who that is
EVERYBODY = {
    ("User", "system:anonymous"): "anybody without credentials",
    ("Group", "system:unauthenticated"): "anybody without credentials",
    ("Group", "system:authenticated"): "everybody with credentials, every pod included",
    ("Group", "system:serviceaccounts"): "every pod",
}
# whom a binding to this role gives everything; groups of namespaces' pods by how they begin
_ADMIN = "cluster-admin"
_MACHINES = {
    ("Group", "system:nodes"): "every kubelet",
    ("Group", "system:bootstrappers"): "whoever has a token to join nodes",
    ("ServiceAccount", "default"): "every pod of its namespace that names no account of its own",
}
_OF_NAMESPACE = "system:serviceaccounts:"
_INFO = "kubeadm:bootstrap-signer-clusterinfo"
# namespace and name of the bindings that are right -> names of whom they are for
_USUAL: Mapping[tuple[str, str], frozenset[str]] = {
    ("", "system:basic-user"): frozenset({"system:authenticated"}),
    ("", "system:cluster-trust-bundle-discovery"): frozenset({"system:serviceaccounts"}),
    ("", "system:discovery"): frozenset({"system:authenticated"}),
    ("", "system:public-info-viewer"): frozenset(
        {"system:authenticated", "system:unauthenticated"}
    ),
    ("", "system:service-account-issuer-discovery"): frozenset({"system:serviceaccounts"}),
    ("kube-public", _INFO): frozenset({"system:anonymous"}),
}
# their roles have the same names
ROLES = {
    f"{RBAC}/clusterroles/{name}"
    if not namespace
    else f"{RBAC}/namespaces/{namespace}/roles/{name}": (namespace, name)
    for namespace, name in _USUAL
}
BINDING_PATHS = {CLUSTER_BINDINGS: "ClusterRoleBinding", BINDINGS: "RoleBinding"}
PATHS = (*BINDING_PATHS, *ROLES)
_URLS = frozenset(
    (
        *("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"),
        *("/healthz", "/livez", "/readyz", "/version", "/version/"),
        *("/.well-known/openid-configuration", "/.well-known/openid-configuration/"),
        *("/openid/v1/jwks", "/openid/v1/jwks/"),
    )
)
_OWN_RIGHTS = frozenset(
    ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")
)


@dataclass(frozen=True, kw_only=True)
class OpenRight:
    """Rights that somebody has given to everybody.

    + kind, namespace, name: of the binding, or of a role of Kubernetes' own that has more than
      Kubernetes gives it; namespace "": in the whole cluster
    + subjects: whom, as the binding names them
    + role: `ClusterRole cluster-admin`; of a role: what was added to it
    """

    kind: str
    namespace: str
    name: str
    subjects: tuple[str, ...]
    role: str

    @property
    def place(self) -> str:
        """Kind and name, as kubectl takes them."""
        return f"{self.kind.lower()} {self.name}" + (
            f" -n {self.namespace}" if self.namespace else ""
        )

    @property
    def label(self) -> str:
        """`ClusterRoleBinding everyone`."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}"

    @property
    def holders(self) -> str:
        """The subjects that have the rights, in words."""
        descriptions = {name: words for (_, name), words in (EVERYBODY | _MACHINES).items()}
        return "; ".join(
            f"{name} ({descriptions.get(name, 'every pod of the namespace')})"
            for name in self.subjects
        )

    @property
    def remedy(self) -> str:
        """What to do."""
        exception = f"where it is meant: kubectl annotate {self.place} {INTENT_ANNOTATION}=true"
        if self.kind.endswith("Binding"):
            return f"kubectl delete {self.place}; {exception}"
        return f"kubectl edit {self.place}: take out what was added; {exception}"


def open_rights(answers: Mapping[str, Any]) -> list[OpenRight]:
    """What somebody has given to everybody, by what the API server answered behind `PATHS`."""
    return [*_bindings(answers), *_widened(answers)]


def _bindings(answers: Mapping[str, Any]) -> Iterator[OpenRight]:
    for path, kind in BINDING_PATHS.items():
        for item in (answers.get(path) or {}).get("items") or ():
            meta, role = item["metadata"], item["roleRef"]
            place = meta.get("namespace") or "", meta["name"]
            usual = _USUAL.get(place, frozenset()) if role["name"] == meta["name"] else frozenset()
            subjects = [subject for subject in _everybody(item) if subject not in usual]
            if subjects and not _is_intended(meta):
                yield OpenRight(
                    kind=kind,
                    namespace=place[0],
                    name=place[1],
                    subjects=tuple(subjects),
                    role=f"{role['kind']} {role['name']}",
                )


def _everybody(binding: Mapping[str, Any]) -> Iterable[str]:
    subjects = [(entry["kind"], entry["name"]) for entry in binding.get("subjects") or ()]
    if binding["roleRef"]["name"] == _ADMIN:
        groups = {("Group", name) for _, name in subjects if name.startswith(_OF_NAMESPACE)}
        known_subjects = {*EVERYBODY, *_MACHINES, *groups}
    else:
        known_subjects = {*EVERYBODY}
    return [subject[1] for subject in subjects if subject in known_subjects]


def _is_intended(meta: Mapping[str, Any]) -> bool:
    return (meta.get("annotations") or {}).get(INTENT_ANNOTATION) == "true"


def _widened(answers: Mapping[str, Any]) -> Iterator[OpenRight]:
    """Roles of Kubernetes' own that everybody has, with rights that Kubernetes does not give."""
    for path, (namespace, name) in ROLES.items():
        role = answers.get(path)
        if role is None or _is_intended(role["metadata"]):
            continue
        added = [rule for rule in role.get("rules") or () if not _is_harmless(rule)]
        if added:
            yield OpenRight(
                kind="Role" if namespace else "ClusterRole",
                namespace=namespace,
                name=name,
                subjects=tuple(sorted(_USUAL[namespace, name])),
                role="; ".join(map(_text, added)),
            )


def _is_harmless(rule: Mapping[str, Any]) -> bool:
    verbs, resources = set(rule.get("verbs") or ()), set(rule.get("resources") or ())
    if not resources:
        return set(rule.get("nonResourceURLs") or ()) <= _URLS and verbs <= {"get", "head"}
    if resources <= _OWN_RIGHTS:
        return verbs <= {"create"}
    if resources == {"clustertrustbundles"}:
        return verbs <= {"get", "list", "watch"}
    is_info = resources == {"configmaps"} and rule.get("resourceNames") == ["cluster-info"]
    return is_info and verbs <= {"get"}


def _text(rule: Mapping[str, Any]) -> str:
    resources = rule.get("resources") or rule.get("nonResourceURLs") or ()
    return f"{', '.join(rule.get('verbs') or ())} {', '.join(resources)}"
