"""Questions to Prometheus about pods, GPUs and namespaces, and what limits the work of a pod."""
