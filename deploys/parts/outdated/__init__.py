"""Versions that repositories serve."""
