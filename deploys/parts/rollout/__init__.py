"""Waiting for what a run has applied."""
