"""Kubernetes' conformance suite on a running cluster."""
