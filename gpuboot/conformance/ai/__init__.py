"""Evidence for CNCF's Kubernetes AI Conformance, and the folder that a submission to it needs."""
