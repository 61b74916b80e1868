"""The kernel's modules and settings, swap, names of hosts."""
