"""Nodes in use: upgraded, shared in another way, out of service and in again."""
