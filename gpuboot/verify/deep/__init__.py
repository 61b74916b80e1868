"""The level `deep`: long tests of nodes that no pod uses, and of pairs of them.

`deep_plan` chooses nodes and makes the pods, `deep_runner` runs them and collects `deep_answers`,
which `deep_files` keeps in the report, and of which `resume` takes what still holds. `pairs`,
`pair_runner` and `internode` do the same between nodes. `dcgm_diag`, `nvbandwidth`, `nccl_tests`
and `gpu_state_at_work` read what the programs print; `verdicts` makes findings of it, by
the figures of `thresholds`.
"""
