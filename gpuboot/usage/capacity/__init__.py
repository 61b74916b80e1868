"""Whether there are enough GPUs: a forecast of demand, and what fits into the cluster now."""
