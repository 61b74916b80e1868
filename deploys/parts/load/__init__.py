"""Load on free GPUs."""
