"""DCGM's host engine."""
