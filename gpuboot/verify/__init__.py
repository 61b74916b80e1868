"""Verification: evidence is collected, pure checks turn it into findings, findings into reports."""
