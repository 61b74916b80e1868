"""GPU monitoring without Kubernetes: Docker hosts with GPUs, and one host that watches them."""
