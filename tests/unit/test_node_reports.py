"""When a kubelet last reported, by the API server's clock where that is known."""

from gpuboot.cluster.node_reports import last_report

NOON = 1_795_348_800.0  # 2026-11-22T12:00:00Z


def lease(renewed: str, written_at: str = "", by: str = "kubelet") -> dict[str, object]:
    entries = [{"manager": by, "operation": "Update", "time": written_at}] if written_at else []
    return {"metadata": {"managedFields": entries}, "spec": {"renewTime": renewed}}


def test_the_api_servers_clock_counts_where_the_nodes_own_is_wrong() -> None:
    node_clock = "2026-11-22T14:00:00.123456Z"
    assert last_report(lease(node_clock, "2026-11-22T12:00:00Z"), {}) == NOON
    assert last_report(lease("2026-11-22T12:00:00.500000Z"), {}) == NOON + 0.5


def test_the_later_of_lease_and_node() -> None:
    """A node that has just joined has no Lease yet."""
    writers = [("kubelet", "2026-11-22T12:00:05Z"), ("flanneld", "2026-11-22T12:00:09Z")]
    node = {
        "metadata": {"managedFields": [{"manager": manager, "time": at} for manager, at in writers]}
    }
    assert last_report({}, node) == NOON + 5
    assert last_report(lease("", "2026-11-22T12:00:00Z"), node) == NOON + 5


def test_never() -> None:
    assert last_report({}, {"metadata": {"name": "gpu1"}}) == 0.0
