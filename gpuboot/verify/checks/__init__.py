"""The proof chain: pure checks of the evidence.

One file per group of links; `chain.evaluate` puts them together. Nothing here talks to a machine.
"""
