"""The level `deep`: long tests of nodes that no pod uses, and of pairs of them.

`plan` chooses nodes and makes the pods, `runner` runs them and collects `answers`, which `files`
keeps in the report, and of which `resume` takes what still holds. `pairs`, `pair_runner` and
`internode` do the same between nodes. `dcgm_diag`, `nvbandwidth`, `nccl_tests`, `nccl_log` and
`load` read what the programs print; `verdicts` makes findings of it, by the figures of
`thresholds`.
"""
