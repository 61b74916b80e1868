"""Compose projects of hosts without Kubernetes."""
