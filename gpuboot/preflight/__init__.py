"""Preflight: everything that is wrong with the machines, before anything is touched."""
