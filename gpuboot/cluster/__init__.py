"""The cluster: what kubeadm is given, its state and readiness, its API, and the objects in it."""
