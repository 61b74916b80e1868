"""The proof chain: what was seen (`evidence`), and pure verdicts over it.

One file per group of links; `chain.judge` puts them together. Nothing here talks to a machine.
"""
