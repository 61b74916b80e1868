"""MIG layouts of Docker hosts."""
