"""Simulated GPUs: the PCI devices, the driver, its libraries and tools. Nothing here is NVIDIA's.

`pci_devices` puts GPUs into a machine, `packages` is the driver as Debian packages, `builds`
compiles.
"""
