"""The state of a host, and what it can reach."""
