"""Helm, and its releases."""
