"""Repairs of GPU nodes."""
