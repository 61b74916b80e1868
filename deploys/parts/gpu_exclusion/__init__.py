"""GPUs that are not the cluster's."""
