"""What suites that others wrote say of a cluster."""
