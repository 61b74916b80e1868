"""The gate: GPU nodes take no pods before their GPUs are proven."""
