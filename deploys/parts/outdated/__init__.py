"""Which versions repositories serve."""
