"""The level `deep`: long tests of nodes that no pod uses.

`plan` chooses nodes and makes the pods, `runner` runs them and collects `answers`, which `files`
keeps in the report. `dcgm_diag`, `nvbandwidth`, `nccl_tests` and `load` read what the programs
print; `verdicts` makes findings of it, by the figures of `thresholds`.
"""
