"""metrics-server, and what approves kubelets' certificates for it."""
