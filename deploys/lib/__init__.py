"""Helpers of the deploys that do not look at a host."""
