"""What a diagnosis reads of hosts and of the cluster."""
