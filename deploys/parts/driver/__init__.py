"""The NVIDIA driver, its GPUs and NVSwitches."""
