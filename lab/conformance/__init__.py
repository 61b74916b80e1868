"""Kubernetes' conformance suite against a lab: `scripts/test --conformance`."""
