"""NVIDIA's container toolkit."""
