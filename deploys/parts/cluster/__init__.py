"""The cluster by its API: state, objects, Secrets, and nodes that are drained."""
