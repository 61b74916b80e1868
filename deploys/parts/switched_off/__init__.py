"""Parts of the cluster that are taken away."""
