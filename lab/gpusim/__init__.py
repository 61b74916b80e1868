"""Simulated GPUs: the silicon, the driver, its libraries and tools. Nothing here is NVIDIA's.

`silicon` puts GPUs into a machine, `packages` is the driver as Debian packages, `builds` compiles.
"""
