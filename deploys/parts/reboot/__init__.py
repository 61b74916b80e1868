"""Reboots that are waited for."""
