"""Names in the cluster by which repairs of GPU nodes are known: annotations, taint, ConfigMaps."""

# annotations of a node: the repair that is under way, and the earlier ones
STATE_KEY = "gpuboot.io/repair"
PAST_KEY = "gpuboot.io/repairs"
TAINT_KEY = "gpu-quarantine"  # taint of a node under repair; its alerts are muted meanwhile
# ConfigMaps in kube-system: the open breaker, and by which a person stops all repairs
BREAKER, STOP = "gpuboot-remediate-breaker", "gpuboot-remediate-stop"
# label of a node that is never repaired by itself: gpuboot.io/remediate=off
OPT_OUT = ("gpuboot.io/remediate", "off")
